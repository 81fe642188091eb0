// Declares Secret: small confidential values by key. stringData is merged into data and never returned. Validation
// errors do not contain values. Well-known types require certain keys or annotations.
import { ageColumn, nameColumn } from '../../columns.ts'
import { isRecord } from '../../decode.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { setOwnProperty } from '../../json-value.ts'
import { defineKind } from '../../kind.ts'
import { configMapKeyProblems, dns1123SubdomainProblems } from '../../names.ts'
import { base64ByteLength, CONTENT_BYTES_MAX, validateImmutableContent } from '../shared/content-rules.ts'
import { ACCOUNT_NAME_ANNOTATION, ACCOUNT_TOKEN_TYPE } from './account-token-secret.ts'
import { type Secret, secret } from './secret-schema.ts'

export const secretKind = defineKind<Secret>({
  group: '',
  versions: ['v1'],
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  namespaced: true,
  type: secret,

  nameErrors: dns1123SubdomainProblems,
  defaults: mergeStringData,
  validate(object, errors) {
    let totalBytes = 0
    for (const [key, base64] of Object.entries(object.data ?? {})) {
      errors.invalidAll(`data[${key}]`, key, configMapKeyProblems(key))
      totalBytes += base64ByteLength(base64)
    }
    if (totalBytes > CONTENT_BYTES_MAX) errors.tooLong('data', CONTENT_BYTES_MAX)
    validateTypeKeys(object, errors)
  },
  validateUpdate(next, old, errors) {
    if ((next.type ?? '') !== (old.type ?? '')) errors.invalid('type', next.type ?? '', 'field is immutable')
    validateImmutableContent({ next, old, contentFields: ['data'], errors })
  },

  selectableFields: { type: (object) => object.type },
  columns: [
    nameColumn,
    { name: 'Type', type: 'string', doc: 'Type of the secret.', cell: (object) => object.type },
    { name: 'Data', type: 'string', doc: 'Number of keys.', cell: (object) => Object.keys(object.data ?? {}).length },
    ageColumn,
  ],
  deleteReturnsObject: false,
})

function mergeStringData(object: Secret): void {
  if (!object.stringData) return
  const data = { ...object.data }
  for (const [key, text] of Object.entries(object.stringData))
    setOwnProperty(data, key, Buffer.from(text).toString('base64'))
  if (Object.keys(data).length > 0) object.data = data
  delete object.stringData
}

function validateTypeKeys(object: Secret, errors: FieldErrors): void {
  const data = object.data ?? {}
  const hasKey = (key: string) => Object.hasOwn(data, key)
  switch (object.type) {
    case ACCOUNT_TOKEN_TYPE:
      if (!object.metadata.annotations?.[ACCOUNT_NAME_ANNOTATION]) {
        errors.required(`metadata.annotations[${ACCOUNT_NAME_ANNOTATION}]`)
      }
      return
    case 'kubernetes.io/dockercfg':
      validateJsonKey(data, '.dockercfg', errors)
      return
    case 'kubernetes.io/dockerconfigjson':
      validateJsonKey(data, '.dockerconfigjson', errors)
      return
    case 'kubernetes.io/basic-auth':
      if (hasKey('username') || hasKey('password')) return // one of the two is sufficient
      errors.required('data[username]')
      errors.required('data[password]')
      return
    case 'kubernetes.io/ssh-auth':
      if (!hasKey('ssh-privatekey') || data['ssh-privatekey'] === '') errors.required('data[ssh-privatekey]')
      return
    case 'kubernetes.io/tls':
      if (!hasKey('tls.crt')) errors.required('data[tls.crt]')
      if (!hasKey('tls.key')) errors.required('data[tls.key]')
  }
}

function validateJsonKey(data: Record<string, string>, key: string, errors: FieldErrors): void {
  if (!Object.hasOwn(data, key)) errors.required(`data[${key}]`)
  else if (!isJsonObjectOrNull(Buffer.from(data[key] ?? '', 'base64').toString())) {
    errors.invalid(`data[${key}]`, '<secret contents redacted>', 'must be a JSON object')
  }
}

function isJsonObjectOrNull(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return value === null || isRecord(value)
  } catch {
    return false
  }
}
