// Checks Secrets and ConfigMaps: keys that are valid file names, size limits, and immutability.
import { byteLength, format, isEqualJson, type Report } from './findings.ts'
import { isFileKey } from './names.ts'

const DATA_BYTES_MAX = 1024 * 1024

export function checkSecret(secret: any, report: Report, old?: any): void {
  const data: Record<string, string> = secret.data ?? {}
  checkKeys(data, 'data', report)
  checkBase64(data, 'data', report)
  if (decodedBytes(data) > DATA_BYTES_MAX) report('data', 'too large')
  if (secret.stringData !== undefined) report('stringData', 'must be absent')
  if (!secret.type) report('type', 'the default is missing')
  checkRequiredKeys(secret, data, report)
  if (!old) return
  if (secret.type !== old.type) report('type', 'cannot change')
  checkImmutable(secret, old, ['data'], report)
}

function checkRequiredKeys({ type, metadata }: any, data: Record<string, string>, report: Report): void {
  const requireKey = (key: string) => {
    if (!(key in data)) report(`data[${key}]`, `${type} requires it`)
  }
  const requireJson = (key: string) => {
    requireKey(key)
    try {
      const value = JSON.parse(Buffer.from(data[key] ?? '', 'base64').toString('utf8'))
      if (typeof value !== 'object' || Array.isArray(value)) report(`data[${key}]`, 'is not a JSON object')
    } catch {
      report(`data[${key}]`, 'is not valid JSON')
    }
  }
  switch (type) {
    case 'kubernetes.io/service-account-token':
      if (!metadata.annotations?.['kubernetes.io/service-account.name'])
        report('metadata.annotations', 'the service account is missing')
      break
    case 'kubernetes.io/dockercfg':
      requireJson('.dockercfg')
      break
    case 'kubernetes.io/dockerconfigjson':
      requireJson('.dockerconfigjson')
      break
    case 'kubernetes.io/basic-auth':
      if (!('username' in data) && !('password' in data)) report('data', 'neither username nor password')
      break
    case 'kubernetes.io/ssh-auth':
      if (!data['ssh-privatekey']) report('data[ssh-privatekey]', 'missing')
      break
    case 'kubernetes.io/tls':
      requireKey('tls.crt')
      requireKey('tls.key')
  }
}

export function checkConfigMap(configMap: any, report: Report, old?: any): void {
  const { data = {}, binaryData = {} } = configMap
  checkKeys(data, 'data', report)
  checkKeys(binaryData, 'binaryData', report)
  checkBase64(binaryData, 'binaryData', report)
  for (const key of Object.keys(data))
    if (Object.hasOwn(binaryData, key)) report(`data[${key}]`, 'is also in binaryData')
  const textBytes = Object.values<string>(data).reduce((sum, text) => sum + byteLength(text), 0)
  if (textBytes + decodedBytes(binaryData) > DATA_BYTES_MAX) report('data', 'too large')
  if (old) checkImmutable(configMap, old, ['data', 'binaryData'], report)
}

function checkImmutable(object: any, old: any, fields: readonly string[], report: Report): void {
  if (old.immutable !== true) return
  if (object.immutable !== true) report('immutable', 'cannot be unset')
  for (const field of fields) if (!isEqualJson(object[field], old[field])) report(field, 'is immutable')
}

function checkKeys(map: Record<string, string>, path: string, report: Report): void {
  for (const key of Object.keys(map)) if (!isFileKey(key)) report(path, `${format(key)} is not a valid key`)
}

function checkBase64(map: Record<string, string>, path: string, report: Report): void {
  for (const [key, text] of Object.entries(map)) {
    if (Buffer.from(text, 'base64').toString('base64') !== text) report(`${path}[${key}]`, 'is not canonical base64')
  }
}

const decodedBytes = (map: Record<string, string>): number =>
  Object.values(map).reduce((sum, text) => sum + Buffer.from(text, 'base64').length, 0)
