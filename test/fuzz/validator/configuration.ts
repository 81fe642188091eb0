// Secret and ConfigMap: keys usable as file names, size limits, and immutability.
import { byteLength, type Say, same, show } from './findings.ts'
import { isFileKey } from './names.ts'

const DATA_BYTES_MAX = 1024 * 1024

export function checkSecret(secret: any, say: Say, old?: any): void {
  const data: Record<string, string> = secret.data ?? {}
  checkKeys(data, 'data', say)
  checkBase64(data, 'data', say)
  if (decodedBytes(data) > DATA_BYTES_MAX) say('data', 'too large')
  if (secret.stringData !== undefined) say('stringData', 'is never answered')
  if (!secret.type) say('type', 'the default is missing')
  checkPromisedKeys(secret, data, say)
  if (!old) return
  if (secret.type !== old.type) say('type', 'cannot change')
  checkSealed(secret, old, ['data'], say)
}

function checkPromisedKeys({ type, metadata }: any, data: Record<string, string>, say: Say): void {
  const need = (key: string) => {
    if (!(key in data)) say(`data[${key}]`, `${type} promises it`)
  }
  const needJson = (key: string) => {
    need(key)
    try {
      const value = JSON.parse(Buffer.from(data[key] ?? '', 'base64').toString('utf8'))
      if (typeof value !== 'object' || Array.isArray(value)) say(`data[${key}]`, 'is no JSON object')
    } catch {
      say(`data[${key}]`, 'is no JSON')
    }
  }
  switch (type) {
    case 'kubernetes.io/service-account-token':
      if (!metadata.annotations?.['kubernetes.io/service-account.name']) say('metadata.annotations', 'names no account')
      break
    case 'kubernetes.io/dockercfg':
      needJson('.dockercfg')
      break
    case 'kubernetes.io/dockerconfigjson':
      needJson('.dockerconfigjson')
      break
    case 'kubernetes.io/basic-auth':
      if (!('username' in data) && !('password' in data)) say('data', 'neither username nor password')
      break
    case 'kubernetes.io/ssh-auth':
      if (!data['ssh-privatekey']) say('data[ssh-privatekey]', 'missing')
      break
    case 'kubernetes.io/tls':
      need('tls.crt')
      need('tls.key')
  }
}

export function checkConfigMap(configMap: any, say: Say, old?: any): void {
  const { data = {}, binaryData = {} } = configMap
  checkKeys(data, 'data', say)
  checkKeys(binaryData, 'binaryData', say)
  checkBase64(binaryData, 'binaryData', say)
  for (const key of Object.keys(data)) if (Object.hasOwn(binaryData, key)) say(`data[${key}]`, 'is in binaryData too')
  const textBytes = Object.values<string>(data).reduce((sum, text) => sum + byteLength(text), 0)
  if (textBytes + decodedBytes(binaryData) > DATA_BYTES_MAX) say('data', 'too large')
  if (old) checkSealed(configMap, old, ['data', 'binaryData'], say)
}

function checkSealed(object: any, old: any, fields: readonly string[], say: Say): void {
  if (old.immutable !== true) return
  if (object.immutable !== true) say('immutable', 'cannot be taken back')
  for (const field of fields) if (!same(object[field], old[field])) say(field, 'is sealed')
}

function checkKeys(map: Record<string, string>, path: string, say: Say): void {
  for (const key of Object.keys(map)) if (!isFileKey(key)) say(path, `${show(key)} is no key`)
}

function checkBase64(map: Record<string, string>, path: string, say: Say): void {
  for (const [key, text] of Object.entries(map)) {
    if (Buffer.from(text, 'base64').toString('base64') !== text) say(`${path}[${key}]`, 'is no canonical base64')
  }
}

const decodedBytes = (map: Record<string, string>): number =>
  Object.values(map).reduce((sum, text) => sum + Buffer.from(text, 'base64').length, 0)
