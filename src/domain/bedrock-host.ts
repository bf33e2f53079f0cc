/**
 * AWS's own hosts of Bedrock, private ones included: nobody else is sent the function's credentials. It is not all of
 * AWS's domain, where anybody may have an API.
 */
export const isBedrockHost = (hostname: string): boolean =>
  /^(?:vpce-[a-z0-9-]+\.)?bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.(?:vpce\.)?amazonaws\.(?:com|com\.cn|eu)$/.test(
    hostname,
  )
