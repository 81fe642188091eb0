// Redacts CSI messages and error texts for logs: fields marked csi_secret, mount flags (which may contain a password) and
// service account tokens. Credentials of provisioners are redact-credentials.ts.
import {
  clone,
  type DescField,
  type DescMessage,
  getOption,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { type ReflectList, type ReflectMap, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { csi_secret } from './gen/csi_pb.js'

const HIDDEN = '***'
const SERVICE_ACCOUNT_TOKENS = 'csi.storage.k8s.io/serviceAccount.tokens'

/** The redacted message, computed only if the log entry is written. */
export function redactLazily(schema: DescMessage, message: Message): { toJSON(): JsonValue } {
  return { toJSON: () => redact(schema, message) }
}

/** The message as JSON. Secrets show only their keys. */
export function redact(schema: DescMessage, message: Message): JsonValue {
  const copy = clone(schema, message)
  hideIn(reflect(schema, copy))
  return toJson(schema, copy)
}

/** Removes the secrets of a request from a text: drivers may repeat them in their error messages. */
export function redactText(text: string, schema: DescMessage, request: Message): string {
  const values = secretsOf(schema, request).sort((a, b) => b.length - a.length) // longest first: a secret may start with another
  if (values.length === 0) return text
  return text.replace(new RegExp(values.map(escapeRegExp).join('|'), 'g'), HIDDEN)
}

function hideIn(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    if (field.fieldKind === 'map') {
      const map = message.get(field) as ReflectMap
      for (const key of [...map.keys()]) if (isSecret(field) || key === SERVICE_ACCOUNT_TOKENS) map.set(key, HIDDEN)
    } else if (field.fieldKind === 'list') {
      const list = message.get(field) as ReflectList
      if (field.name === 'mount_flags') for (const at of [...list.keys()]) list.set(at, HIDDEN)
      else if (field.listKind === 'message') for (const item of list) hideIn(item as ReflectMessage)
    } else if (field.fieldKind === 'message') hideIn(message.get(field) as ReflectMessage)
  }
}

function secretsOf(schema: DescMessage, request: Message): string[] {
  const message = reflect(schema, request)
  return message.fields
    .filter((field) => isSecret(field) && field.fieldKind === 'map')
    .flatMap((field) => [...(message.get(field) as ReflectMap).values()] as string[])
    .filter((value) => value !== '')
}

const isSecret = (field: DescField) => getOption(field, csi_secret)
const escapeRegExp = (value: string) => value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
