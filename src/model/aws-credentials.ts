export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export type CredentialsOf = () => Promise<AwsCredentials>

let chain: CredentialsOf | undefined

/**
 * The credentials that every client of the AWS SDK in this process would use: on Lambda those of the function's role.
 * The chain keeps what it found until it expires. Loaded with the first call that needs it.
 * @throws Error where there are none
 */
export async function awsCredentials(): Promise<AwsCredentials> {
  if (!chain) {
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
    chain ??= defaultProvider()
  }
  return chain()
}
