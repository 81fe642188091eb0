// Decodes a configuration file in YAML or JSON, such as an audit policy. Decoding is strict: another apiVersion or kind,
// unknown fields, duplicate fields and values of a wrong type are errors.
import { DecodeError, decode, isRecord } from '../api/decode.ts'
import type { ObjectType } from '../api/schema.ts'
import { parseYaml, YamlError } from '../api/yaml-body.ts'

export interface ConfigFormat<T> {
  readonly apiVersion: string
  readonly kind: string
  readonly type: ObjectType<T>
  /** Whether error messages must not quote values. Default: false. */
  readonly isSecret?: boolean
}

/** Returns the decoded object. Error messages do not name the file; the caller adds its name. */
export async function decodeConfigFile<T>(text: string, format: ConfigFormat<T>): Promise<T> {
  const { apiVersion, kind, type, isSecret = false } = format
  const { value, duplicateKeys } = await parseYaml(text).catch((error) => {
    if (!(error instanceof YamlError)) throw error
    throw new Error(isSecret ? 'it is not valid YAML' : error.message)
  })
  if (!isRecord(value)) throw new Error(`expected an object of kind ${kind}`)
  for (const [field, expected] of Object.entries({ apiVersion, kind })) {
    if (value[field] !== expected) {
      throw new Error(`${field} must be ${expected}${isSecret ? '' : `, not ${JSON.stringify(value[field] ?? '')}`}`)
    }
  }
  let decodeResult: ReturnType<typeof decode<T>>
  try {
    decodeResult = decode(type, value, ['apiVersion', 'kind'])
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    throw new Error(isSecret ? `${error.message.split(':', 1)[0]}: wrong type` : error.message)
  }
  const problems = [
    ...decodeResult.unknownFields.map((path) => `unknown field "${path}"`),
    ...duplicateKeys.map((path) => `duplicate field "${path}"`),
  ]
  if (problems.length > 0) throw new Error(problems.join(', '))
  return decodeResult.object
}
