// Validates names, keys and label values. Each `…Problems` function returns the problems of a value, or none if it is valid.

export type NameProblems = readonly string[]

/** Validates a lower-case DNS label, such as the name of a namespace, container or pod volume. */
export function dns1123LabelProblems(value: string): NameProblems {
  if (value.length <= LABEL_LENGTH_MAX && DNS_1123_LABEL.test(value)) return NO_PROBLEMS
  const problems = lengthProblems(value, LABEL_LENGTH_MAX, 'characters')
  if (DNS_1123_LABEL.test(value)) return problems
  if (DNS_1123_SUBDOMAIN.test(value)) return [...problems, 'must not contain dots']
  return [
    ...problems,
    mismatchMessage({
      rule: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
      examples: ['my-name', '123-abc'],
      pattern: DNS_1123_LABEL_PATTERN,
    }),
  ]
}

/** Validates a lower-case DNS subdomain, such as the name of most objects. */
export const dns1123SubdomainProblems = (value: string): NameProblems => subdomainProblems(value, 'characters')

/** Validates a DNS label that starts with a letter, such as a service's name. */
export function dns1035LabelProblems(value: string): NameProblems {
  if (value.length <= LABEL_LENGTH_MAX && DNS_1035_LABEL.test(value)) return NO_PROBLEMS
  const problems = lengthProblems(value, LABEL_LENGTH_MAX, 'characters')
  if (DNS_1035_LABEL.test(value)) return problems
  return [
    ...problems,
    mismatchMessage({
      rule: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
      examples: ['my-name', 'abc-123'],
      pattern: DNS_1035_LABEL_PATTERN,
    }),
  ]
}

/** Validates `[domain/]name`, the form of label keys, annotation keys, finalizers, topology keys and resource names. */
export function qualifiedNameProblems(value: string): NameProblems {
  const slash = value.indexOf('/')
  const name = value.slice(slash + 1)
  const isNameValid = name.length <= LABEL_LENGTH_MAX && KEY_NAME.test(name)
  if (isNameValid && (slash < 0 || (slash > 0 && subdomainProblems(value.slice(0, slash), 'bytes').length === 0)))
    return NO_PROBLEMS
  if (name.includes('/')) return [`a valid label key ${KEY_NAME_MISMATCH} ${KEY_PREFIX_HINT}`]
  const problems: string[] = []
  if (slash === 0) problems.push('prefix part must be non-empty')
  if (slash > 0)
    problems.push(...subdomainProblems(value.slice(0, slash), 'bytes').map((problem) => `prefix part ${problem}`))
  if (name === '') problems.push('name part must be non-empty')
  problems.push(...lengthProblems(name, LABEL_LENGTH_MAX, 'bytes').map((problem) => `name part ${problem}`))
  if (!KEY_NAME.test(name)) problems.push(`name part ${KEY_NAME_MISMATCH}`)
  return problems.length === 0 ? NO_PROBLEMS : problems
}

export function labelValueProblems(value: string): NameProblems {
  const matches = value === '' || KEY_NAME.test(value)
  if (matches && value.length <= LABEL_LENGTH_MAX) return NO_PROBLEMS
  const problems = lengthProblems(value, LABEL_LENGTH_MAX, 'bytes')
  if (matches) return problems
  return [
    ...problems,
    mismatchMessage({
      rule: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
      examples: ['MyValue', 'my_value', '12345'],
      pattern: `(${KEY_NAME_PATTERN})?`,
    }),
  ]
}

/** Validates a key of a ConfigMap or Secret, which is also a file name. */
export function configMapKeyProblems(value: string): NameProblems {
  const problems: string[] = [...lengthProblems(value, SUBDOMAIN_LENGTH_MAX, 'characters')]
  if (!CONFIG_MAP_KEY.test(value)) {
    problems.push(
      mismatchMessage({
        rule: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        examples: ['key.name', 'KEY_NAME', 'key-name'],
        pattern: CONFIG_MAP_KEY_PATTERN,
      }),
    )
  }
  if (value === '.') problems.push("must not be '.'")
  else if (value === '..') problems.push("must not be '..'")
  else if (value.startsWith('..')) problems.push("must not start with '..'")
  return problems.length === 0 ? NO_PROBLEMS : problems
}

/** Validates a segment of a URL path. */
export function pathSegmentProblems(value: string): NameProblems {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return pathSegmentPrefixProblems(value)
}

/** Validates the prefix of a path segment. */
export function pathSegmentPrefixProblems(value: string): NameProblems {
  if (Buffer.byteLength(value) > PATH_SEGMENT_BYTES_MAX) return [`must be no more than ${PATH_SEGMENT_BYTES_MAX} bytes`]
  if (/\p{Surrogate}/u.test(value)) return ['must be well-formed text']
  const forbiddenCharacters = ['/', '%'].filter((character) => value.includes(character))
  if (forbiddenCharacters.length === 0) return NO_PROBLEMS
  return forbiddenCharacters.map((character) => `may not contain '${character}'`)
}

const PATH_SEGMENT_BYTES_MAX = 1_024 // bounds the length of store keys

/** Validates a CSI driver's name: a DNS subdomain in upper or lower case. */
export function csiDriverNameProblems(value: string): NameProblems {
  const problems = dns1123SubdomainProblems(value.toLowerCase())
  return Buffer.byteLength(value) > LABEL_LENGTH_MAX
    ? [`may not be more than ${LABEL_LENGTH_MAX} bytes`, ...problems]
    : problems
}

/** Validates the name of an environment variable: printable ASCII except '='. */
export function envVarNameProblems(value: string): NameProblems {
  if (value === '') return ['environment variable name must be non-empty']
  if (/^[ -<>-~]+$/.test(value)) return NO_PROBLEMS
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

export function cIdentifierProblems(value: string): NameProblems {
  if (C_IDENTIFIER.test(value)) return NO_PROBLEMS
  return [
    mismatchMessage({
      rule: "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
      examples: ['my_name', 'MY_NAME', 'MyName'],
      pattern: C_IDENTIFIER_PATTERN,
    }),
  ]
}

/**
 * Replaces the end of a generateName that has a trailing dash. The dash is valid, because a suffix follows it.
 * `dns1123SubdomainProblems(namePrefix('claim-'))` returns no problems.
 */
export const namePrefix = (value: string): string =>
  value.length > 1 && value.endsWith('-') ? `${value.slice(0, -2)}a` : value

const NO_PROBLEMS: NameProblems = Object.freeze([])
const LABEL_LENGTH_MAX = 63
const SUBDOMAIN_LENGTH_MAX = 253

const DNS_1123_LABEL_PATTERN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const DNS_1123_SUBDOMAIN_PATTERN = `${DNS_1123_LABEL_PATTERN}(\\.${DNS_1123_LABEL_PATTERN})*`
const DNS_1035_LABEL_PATTERN = '[a-z]([-a-z0-9]*[a-z0-9])?'
const KEY_NAME_PATTERN = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const CONFIG_MAP_KEY_PATTERN = '[-._a-zA-Z0-9]+'
const C_IDENTIFIER_PATTERN = '[A-Za-z_][A-Za-z0-9_]*'

const anchor = (pattern: string) => new RegExp(`^${pattern}$`)
const DNS_1123_LABEL = anchor(DNS_1123_LABEL_PATTERN)
const DNS_1123_SUBDOMAIN = anchor(DNS_1123_SUBDOMAIN_PATTERN)
const DNS_1035_LABEL = anchor(DNS_1035_LABEL_PATTERN)
const KEY_NAME = anchor(KEY_NAME_PATTERN)
const CONFIG_MAP_KEY = anchor(CONFIG_MAP_KEY_PATTERN)
const C_IDENTIFIER = anchor(C_IDENTIFIER_PATTERN)

const KEY_NAME_MISMATCH = mismatchMessage({
  rule: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  examples: ['MyName', 'my.name', '123-abc'],
  pattern: KEY_NAME_PATTERN,
})
const KEY_PREFIX_HINT = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"

function subdomainProblems(value: string, unit: LengthUnit): NameProblems {
  const matches = DNS_1123_SUBDOMAIN.test(value)
  if (matches && value.length <= SUBDOMAIN_LENGTH_MAX) return NO_PROBLEMS
  const problems = lengthProblems(value, SUBDOMAIN_LENGTH_MAX, unit)
  if (matches) return problems
  return [
    ...problems,
    mismatchMessage({
      rule: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
      examples: ['example.com'],
      pattern: DNS_1123_SUBDOMAIN_PATTERN,
    }),
  ]
}

// Lengths are always in bytes, but some messages of Kubernetes use the word "characters".
type LengthUnit = 'characters' | 'bytes'

const lengthProblems = (value: string, lengthMax: number, unit: LengthUnit): NameProblems =>
  Buffer.byteLength(value) > lengthMax ? [`must be no more than ${lengthMax} ${unit}`] : NO_PROBLEMS

function mismatchMessage({ rule, examples, pattern }: { rule: string; examples: string[]; pattern: string }): string {
  return `${rule} (e.g. ${examples.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${pattern}')`
}
