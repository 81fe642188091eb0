// The agent's ID, stored in its root directory so that a restarted agent keeps its lease on the node name.
import { join } from 'node:path'
import type { Random } from '../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../base/files.ts'
import { randomUuid } from '../base/identifiers.ts'

export async function readOrCreateAgentId(root: string, random: Random): Promise<string> {
  const path = join(root, 'agent-id')
  const existingId = (await readTextIfPresent(path))?.trim()
  if (existingId) return existingId
  const id = randomUuid(random)
  await writePrivateFile(path, `${id}\n`)
  return id
}
