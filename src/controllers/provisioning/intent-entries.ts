// The entries of the intent journal (intent-journal.ts) as JSON: an object with one claim per uid. An entry contains
// the fields of the claim from which requests to the storage are built.
//
//   {"6f1c…":{"metadata":{"namespace":"shop","name":"orders","uid":"6f1c…",…},"spec":{…}}}
import { isRecord } from '../../api/decode.ts'
import type { Claim } from '../../volumes/matching.ts'

export interface IntentEntry {
  readonly claim: Claim
  /** The JSON of the entry. */
  readonly text: string
}

export type IntentEntries = ReadonlyMap<string, IntentEntry>

export function entryOf({ metadata, spec }: Claim): IntentEntry {
  const { namespace, name, uid, resourceVersion } = metadata
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations ?? {}
  const claim: Claim = { metadata: { namespace, name, uid, resourceVersion, annotations }, spec }
  return { claim, text: JSON.stringify(claim) }
}

/** kubectl's copy of the claim. No request to the storage contains it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

export const formatEntries = (entries: IntentEntries): string =>
  `{${[...entries].map(([uid, { text }]) => `${JSON.stringify(uid)}:${text}`).join(',')}}`

/** Returns the number of characters that an entry adds to the JSON. */
export const charactersOf = (uid: string, { text }: IntentEntry): number => uid.length + text.length + '"":,'.length

/** Throws an error that names `place` if the JSON is invalid, for example because a user edited it. */
export function parseEntries(json: string | undefined, place: string): Map<string, IntentEntry> {
  const entries = new Map<string, IntentEntry>()
  if (!json) return entries
  for (const [uid, claim] of Object.entries(parseObject(json, place))) {
    if (!isClaim(claim, uid)) throw invalidEntries(place, `the entry "${uid}" is not a claim with this uid`)
    entries.set(uid, entryOf(claim))
  }
  return entries
}

function parseObject(json: string, place: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw invalidEntries(place, (error as Error).message)
  }
  if (!isRecord(value)) throw invalidEntries(place, 'the value is not a JSON object')
  return value
}

function isClaim(value: unknown, uid: string): value is Claim {
  if (!isRecord(value) || !isRecord(value.metadata)) return false
  const { metadata, spec } = value
  const hasName = typeof metadata.namespace === 'string' && typeof metadata.name === 'string'
  return metadata.uid === uid && hasName && isRecord(spec)
}

const invalidEntries = (place: string, problem: string): Error =>
  new Error(
    `Cannot read the intents in ${place}: ${problem}. Restore its content; without it, volumes of deleted claims may stay in the storage.`,
  )
