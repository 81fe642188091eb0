// Redacts CSI messages for logs, and masks the secrets of requests in the driver's messages. Secrets are fields marked
// csi_secret, service account tokens, and mount flags, which may contain a password. secret-mask.ts finds them in texts.
import {
  clone,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { type ReflectList, type ReflectMap, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'

import { CsiError } from './errors.ts'
import { csi_secret } from './gen/csi_pb.js'
import { MASK, type SecretMask } from './secret-mask.ts'
import type { Transport } from './transport.ts'

const SERVICE_ACCOUNT_TOKENS = 'csi.storage.k8s.io/serviceAccount.tokens'
const CREDENTIAL_FLAG = /pass|secret|token|key|cred/i

/** Returns an object that is redacted only when a log entry is written. */
export function redactLazily(schema: DescMessage, message: Message, mask?: SecretMask): { toJSON(): JsonValue } {
  return { toJSON: () => redact(schema, message, mask) }
}

/** Returns the message as JSON, with the keys of secrets but not their values. The mask also applies to all other texts. */
export function redact(schema: DescMessage, message: Message, mask?: SecretMask): JsonValue {
  const copy = clone(schema, message)
  redactFields(reflect(schema, copy))
  const json = toJson(schema, copy)
  return mask ? maskJson(json, mask) : json
}

/** Masks the secrets of this and earlier requests in errors and in the `message` fields of responses. */
export function maskSecrets(send: Transport, mask: SecretMask): Transport {
  return async (method: DescMethod, request: Message, options) => {
    mask.add(findSecrets(method.input, request))
    try {
      const response = await send(method, request, options)
      if (mayHaveTexts(method.output)) maskTexts(reflect(method.output, response), mask)
      return response
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      const message = mask.mask(error.message)
      throw message === error.message ? error : new CsiError(error.codeName, message)
    }
  }
}

/** Returns the secret values of a request. */
export function findSecrets(schema: DescMessage, request: Message): string[] {
  const message = reflect(schema, request)
  return secretFieldsOf(schema).flatMap((field) => {
    if (!message.isSet(field)) return []
    if (field.fieldKind === 'map') {
      const map = message.get(field) as ReflectMap
      if (isSecret(field)) return [...map.values()] as string[]
      return map.has(SERVICE_ACCOUNT_TOKENS) ? findTokens(map.get(SERVICE_ACCOUNT_TOKENS) as string) : []
    }
    if (field.fieldKind === 'list' && field.listKind === 'message')
      return [...(message.get(field) as ReflectList)].flatMap((item) => findFlagSecrets(item as ReflectMessage))
    return field.fieldKind === 'message' ? findFlagSecrets(message.get(field) as ReflectMessage) : []
  })
}

/** Returns the fields that may contain a secret or mount flags. */
function secretFieldsOf(schema: DescMessage): readonly DescField[] {
  let fields = secretFields.get(schema)
  if (!fields) {
    fields = schema.fields.filter((field) => field.fieldKind === 'map' || mayHaveFlags(field))
    secretFields.set(schema, fields)
  }
  return fields
}

const secretFields = new Map<DescMessage, readonly DescField[]>()

/** Whether the message of the field, or each message of the list, may contain mount flags. */
const mayHaveFlags = ({ message }: DescField): boolean =>
  message !== undefined && containsField(message, 'mount_flags', flagTypes)
const flagTypes = new Map<DescMessage, boolean>()

/** Whether a message may contain a field called `message`. Most responses do not, and are not searched. */
const mayHaveTexts = (schema: DescMessage): boolean => containsField(schema, 'message', textTypes)
const textTypes = new Map<DescMessage, boolean>()

/** Whether the message, or one that it contains, has a field of this name. `results` has those of earlier calls. */
function containsField(schema: DescMessage, name: string, results: Map<DescMessage, boolean>): boolean {
  let result = results.get(schema)
  if (result === undefined) {
    result = typesIn(schema).some(({ fields }) => fields.some((field) => field.name === name))
    results.set(schema, result)
  }
  return result
}

/** Returns the type and those of all messages that it contains. */
function typesIn(schema: DescMessage): readonly DescMessage[] {
  const types = new Set([schema])
  for (const { fields } of types) for (const { message } of fields) if (message) types.add(message)
  return [...types]
}

/** Returns the mount flags with a value and, if the name of the flag suggests a credential, also the value alone. */
function findFlagSecrets(message: ReflectMessage): string[] {
  return message.fields.flatMap((field) => {
    if (!message.isSet(field)) return []
    if (field.fieldKind === 'message') return findFlagSecrets(message.get(field) as ReflectMessage)
    if (field.name !== 'mount_flags' || field.fieldKind !== 'list') return []
    return ([...(message.get(field) as ReflectList)] as string[]).flatMap((flag) => {
      const [name = '', value] = splitOnce(flag, '=')
      if (value === undefined) return []
      return CREDENTIAL_FLAG.test(name) ? [flag, value] : [flag]
    })
  })
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const index = text.indexOf(separator)
  return index === -1 ? [text, undefined] : [text.slice(0, index), text.slice(index + separator.length)]
}

/** Returns the text, and the tokens in it if it is `{"audience": {"token": "…", "expirationTimestamp": "…"}}`. */
function findTokens(text: string): string[] {
  try {
    const byAudience = JSON.parse(text) as Readonly<Record<string, { readonly token?: unknown } | null>>
    const tokens = Object.values(byAudience).map((entry) => entry?.token)
    return [text, ...tokens.filter((token) => typeof token === 'string')]
  } catch {
    return [text]
  }
}

/** Masks the fields called `message`, which are for humans. Other texts are data that must not change. */
function maskTexts(message: ReflectMessage, mask: SecretMask): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    if (field.fieldKind === 'message') maskTexts(message.get(field) as ReflectMessage, mask)
    else if (field.fieldKind === 'list' && field.listKind === 'message')
      for (const item of message.get(field) as ReflectList) maskTexts(item as ReflectMessage, mask)
    else if (field.fieldKind === 'scalar' && field.name === 'message')
      message.set(field, mask.mask(message.get(field) as string))
  }
}

function maskJson(value: JsonValue, mask: SecretMask): JsonValue {
  if (typeof value === 'string') return mask.mask(value)
  if (Array.isArray(value)) return value.map((item) => maskJson(item, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskJson(item, mask)]))
}

function redactFields(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    if (field.fieldKind === 'map') {
      const map = message.get(field) as ReflectMap
      for (const key of [...map.keys()]) if (isSecret(field) || key === SERVICE_ACCOUNT_TOKENS) map.set(key, MASK)
    } else if (field.fieldKind === 'list') {
      const list = message.get(field) as ReflectList
      if (field.name === 'mount_flags') for (const index of [...list.keys()]) list.set(index, MASK)
      else if (field.listKind === 'message') for (const item of list) redactFields(item as ReflectMessage)
    } else if (field.fieldKind === 'message') redactFields(message.get(field) as ReflectMessage)
  }
}

/** Cached, because reading an option of a field decodes it. */
function isSecret(field: DescField): boolean {
  let result = secretOptions.get(field)
  if (result === undefined) {
    result = getOption(field, csi_secret)
    secretOptions.set(field, result)
  }
  return result
}

const secretOptions = new Map<DescField, boolean>()
