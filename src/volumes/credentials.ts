// Reads the credentials for CSI calls from the Secret that a volume or a class names. Error messages name the Secret.
// controllers/provisioning/csi/secret-reference.ts resolves the secret templates of a class; csi/redact.ts masks credentials
// in messages of drivers.
import { secretKind } from '../api/kinds/secret/secret.ts'
import { ApiError, isForbidden, isNotFound } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'

export type Credentials = Readonly<Record<string, string>>

export interface SecretRef {
  readonly namespace: string
  readonly name: string
}

export class UnreadableSecretError extends Error {
  override readonly name = 'UnreadableSecretError'
  /** Whether a retry may succeed. False if the Secret is missing or forbidden, or a value is not text. */
  readonly isTransient: boolean

  constructor(message: string, { isTransient }: { isTransient: boolean }) {
    super(message)
    this.isTransient = isTransient
  }
}

/** Throws UnreadableSecretError if the API server returns an error or a value is not UTF-8 text. */
export async function readCredentials(client: Client, ref: SecretRef, signal: AbortSignal): Promise<Credentials> {
  const { namespace, name } = ref
  let data: Readonly<Record<string, string>>
  try {
    data = (await client.get(secretKind, { namespace, name }, { signal })).data ?? {}
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new UnreadableSecretError(`error getting secret ${name} in namespace ${namespace}: ${error.message}`, {
      isTransient: !isNotFound(error) && !isForbidden(error),
    })
  }
  const credentials: Record<string, string> = {}
  for (const [key, base64] of Object.entries(data)) {
    try {
      credentials[key] = UTF8.decode(Buffer.from(base64, 'base64'))
    } catch {
      throw new UnreadableSecretError(
        `key "${key}" of secret ${name} in namespace ${namespace} is not UTF-8 text: a binary value must be stored as text, for example in base64`,
        { isTransient: false },
      )
    }
  }
  return credentials
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
