// Checks the syntax of names according to the API conventions.

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const WORD = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

export const isDnsLabel = (text: string): boolean => text.length <= 63 && LABEL.test(text)

export const isDnsSubdomain = (text: string): boolean =>
  text.length <= 253 && text.split('.').every((label) => LABEL.test(label))

/** Whether the text has the form `name` or `prefix/name`. */
export function isQualifiedName(text: string): boolean {
  const parts = text.split('/')
  if (parts.length > 2) return false
  const name = parts.at(-1)!
  if (parts.length === 2 && !isDnsSubdomain(parts[0]!)) return false
  return name.length <= 63 && WORD.test(name)
}

export const isLabelValue = (text: string): boolean => text === '' || (text.length <= 63 && WORD.test(text))

/** Whether the text is a valid key of a Secret or ConfigMap, which becomes a file name. */
export const isFileKey = (text: string): boolean =>
  text.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(text) && text !== '.' && !text.startsWith('..')

/** Whether the text can be one segment of a URL path, with limited length. */
export const isPathSegment = (text: string): boolean =>
  text !== '' && text.length <= 1_024 && text !== '.' && text !== '..' && !/[/%\p{Surrogate}]/u.test(text)

export const isDriverName = (text: string): boolean => text.length <= 63 && isDnsSubdomain(text.toLowerCase())

/** Whether the text is a qualified name in any case, as provisioners of classes are. */
export const isProvisioner = (text: string): boolean => isQualifiedName(text.toLowerCase())

export const isUid = (text: unknown): boolean =>
  typeof text === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)

export const isPortName = (text: string): boolean =>
  text.length <= 15 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(text) && /[a-z]/.test(text)

export const hasParentSegment = (path: string): boolean => path.split('/').includes('..')
