// Messages and texts without what must not be written down: fields the protocol marks as secret, mount flags (which
// may hold a password) and the tokens a pod's service account is given.
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

/** The message as JSON, in which secrets show their keys only. Done when it is written, not before. */
export function redactLazily(schema: DescMessage, message: Message): { toJSON(): JsonValue } {
  return { toJSON: () => redact(schema, message) }
}

export function redact(schema: DescMessage, message: Message): JsonValue {
  const copy = clone(schema, message)
  hideIn(reflect(schema, copy))
  return toJson(schema, copy)
}

/** The text without the secrets of a request. Drivers repeat in their errors what they were given. */
export function redactText(text: string, schema: DescMessage, request: Message): string {
  const values = secretsOf(schema, request).sort((a, b) => b.length - a.length) // a secret may begin with another
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
