// Redacts CSI messages and error messages for logs: fields marked csi_secret, mount flags (which may contain a password) and
// service account tokens. redact-credentials.ts redacts the credentials of provisioners.
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

const REDACTED = '***'
const SERVICE_ACCOUNT_TOKENS = 'csi.storage.k8s.io/serviceAccount.tokens'

/** Returns an object that is redacted only when a log entry is written. */
export function redactLazily(schema: DescMessage, message: Message): { toJSON(): JsonValue } {
  return { toJSON: () => redact(schema, message) }
}

/** Returns the message as JSON, with the keys of secrets but not their values. */
export function redact(schema: DescMessage, message: Message): JsonValue {
  const copy = clone(schema, message)
  redactFields(reflect(schema, copy))
  return toJson(schema, copy)
}

/** Removes the secrets of a request from a text, because drivers may repeat them in error messages. */
export function redactText(text: string, schema: DescMessage, request: Message): string {
  const values = secretsOf(schema, request).sort((a, b) => b.length - a.length) // longest first, because a secret may contain another
  if (values.length === 0) return text
  return text.replace(new RegExp(values.map(escapeRegExp).join('|'), 'g'), REDACTED)
}

function redactFields(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    if (field.fieldKind === 'map') {
      const map = message.get(field) as ReflectMap
      for (const key of [...map.keys()]) if (isSecret(field) || key === SERVICE_ACCOUNT_TOKENS) map.set(key, REDACTED)
    } else if (field.fieldKind === 'list') {
      const list = message.get(field) as ReflectList
      if (field.name === 'mount_flags') for (const index of [...list.keys()]) list.set(index, REDACTED)
      else if (field.listKind === 'message') for (const item of list) redactFields(item as ReflectMessage)
    } else if (field.fieldKind === 'message') redactFields(message.get(field) as ReflectMessage)
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
