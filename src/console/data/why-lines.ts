// Returns the cause for each claim that is not ready, up to a limit, computed from one snapshot.
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { explainClaims, readSnapshot } from '../../diagnosis/index.ts'
import type { WhyLines } from '../protocol.ts'

const LINES_MAX = 2_000

export async function readWhyLines(
  client: Pick<Client, 'list' | 'serves'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<WhyLines> {
  const snapshot = await readSnapshot({ client, allNamespaces: true, nowMs: clock.nowMs(), signal })
  const { lines, omitted } = await explainClaims(snapshot, { linesMax: LINES_MAX, pause: () => clock.nextTurn() })
  return { lines, omitted, missingRules: snapshot.missingRules.map(({ rule }) => rule) }
}
