// The name of the finalizer with which a provisioner records that a volume may exist for a claim
// (controllers/provisioning/intent.ts). Each instance of a per-node provisioner has its own name, so that the intents of a lost
// node can be recognized.
import { createHash } from 'node:crypto'

export const INTENT_PREFIX = 'provisioning.stowage.dev/'
const NAME_CHARACTERS_MAX = 63
const HASH_CHARACTERS = 8

export function intentOf(provisionerName: string, instance?: string): string {
  const name = (instance === undefined ? provisionerName : `${provisionerName}.${instance}`).replaceAll('/', '-')
  if (name.length <= NAME_CHARACTERS_MAX) return INTENT_PREFIX + name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS)
  return `${INTENT_PREFIX}${name.slice(0, NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1)}.${hash}`
}
