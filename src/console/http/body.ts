// Reads the body of a request up to a limit.
import type { IncomingMessage } from 'node:http'
import { badRequest, bodyTooLarge } from '../../api/status-error.ts'

/** A larger body is rejected with 413. API servers accept at most 3 MiB. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024

export async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of incoming) {
    size += (chunk as Buffer).length
    if (size > BODY_BYTES_MAX) throw bodyTooLarge(BODY_BYTES_MAX)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws 400 unless the body is a JSON object. */
export async function readJsonObject(incoming: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const text = await readBody(incoming)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('the body is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badRequest('the body is not an object')
  return value as Readonly<Record<string, unknown>>
}
