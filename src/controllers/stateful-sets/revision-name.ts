// The name of a revision: the set's name and a hash of the data, as kube-controller-manager computes it. Pure.
//   web-6f9d7cbb8
import type { JsonValue } from '../../api/json-value.ts'

/** The limit of kube-controller-manager, which leaves space for the hash in the 253 characters of a name. */
const SET_NAME_CHARACTERS_MAX = 223
/** The letters and digits of generated names: without vowels and without digits that look like letters. */
const SAFE_CHARACTERS = 'bcdfghjklmnpqrstvwxz2456789'

export const revisionName = (setName: string, hash: string): string =>
  `${setName.slice(0, SET_NAME_CHARACTERS_MAX)}-${hash}`

/** Hashes the data and the number of earlier collisions. */
export function revisionHash(data: JsonValue, collisionCount: number): string {
  const decimal = String(fnv32(Buffer.from(formatSorted(data) + collisionCount)))
  return [...decimal].map((digit) => SAFE_CHARACTERS[digit.charCodeAt(0) % SAFE_CHARACTERS.length]).join('')
}

/** The hash function FNV-1 with 32 bits. */
function fnv32(bytes: Uint8Array): number {
  let hash = 2_166_136_261
  for (const byte of bytes) hash = (Math.imul(hash, 16_777_619) ^ byte) >>> 0
  return hash
}

/** Formats JSON with sorted keys and the escapes of Go's encoding/json, which the hash depends on. */
function formatSorted(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return `[${value.map(formatSorted).join(',')}]`
  if (value === null || typeof value !== 'object') return escapeForHtml(JSON.stringify(value ?? null))
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${escapeForHtml(JSON.stringify(key))}:${formatSorted(item)}`).join(',')}}`
}

const escapeForHtml = (text: string): string =>
  text.replace(/[<>&\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
