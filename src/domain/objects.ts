/** Whether a value of unknown origin is a mapping: no list, and not null. */
export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
