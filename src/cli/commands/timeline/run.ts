// Runs `stowage timeline`: reads the timeline from the journal of the server, or reconstructs it if the server has none, and
// prints it. Throws an Error, which exits with code 1, if the object has no timeline.
import { writeFile } from 'node:fs/promises'
import type { Kind } from '../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { timelineReviewKind } from '../../../api/kinds/timeline/timeline-review.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import { findSimilarNames } from '../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { drawTimeline } from './draw-timeline.ts'
import { formatTimeline } from './format-timeline.ts'
import { reconstructTimeline } from './reconstruct-timeline.ts'
import { type ShownTimeline, shortRefOf, type TimelineTarget } from './shown-timeline.ts'

interface TimelineFlags {
  readonly namespace?: string
  readonly uid?: string
  readonly svg?: string
  readonly kubeconfig?: string
  readonly output: OutputFormat
}

interface TimelineDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
}

export async function runTimeline(object: string, flags: TimelineFlags, deps: TimelineDeps): Promise<void> {
  const config = await loadClientConfig(flags.kubeconfig, deps)
  const target = parseTarget(object, flags, config.namespace)
  const client = httpClient({ connection: config.connection, clock: deps.clock, userAgent: 'stowage-timeline' })
  try {
    const timeline = await readShownTimeline(client, target, deps.signal)
    deps.write(await formatOutput(flags.output, timeline, () => formatTimeline(timeline)))
    if (flags.svg !== undefined) await writeFile(flags.svg, drawTimeline(timeline))
  } finally {
    client.close()
  }
}

const KINDS = [persistentVolumeClaimKind, persistentVolumeKind]

/** `namespace` is the namespace of the kubeconfig, for a claim without the flag --namespace. */
export function parseTarget(
  text: string,
  flags: Pick<TimelineFlags, 'namespace' | 'uid'>,
  namespace: string,
): TimelineTarget {
  const [, kindText = '', name] = /^([^/]+)\/([^/]+)$/.exec(text) ?? []
  const kind = KINDS.find(({ singular, plural, shortNames = [] }) =>
    [singular, plural, ...shortNames].includes(kindText.toLowerCase()),
  )
  if (!kind || !name) throw new UsageError(`${JSON.stringify(text)}: expected pvc/NAME or pv/NAME`)
  const uid = flags.uid === undefined ? {} : { uid: flags.uid }
  if (kind === persistentVolumeKind) return { kind: 'PersistentVolume', name, ...uid }
  return { kind: 'PersistentVolumeClaim', namespace: flags.namespace ?? namespace, name, ...uid }
}

export async function readShownTimeline(
  client: Client,
  target: TimelineTarget,
  signal: AbortSignal,
): Promise<ShownTimeline> {
  if (!(await client.serves(timelineReviewKind))) return reconstructTimeline(client, target, signal)
  const { status = {} } = await client.create(timelineReviewKind, { metadata: {}, spec: { ...target } }, { signal })
  const { uid, otherUids = [], steps = [], entries = [], isTruncated } = status
  if (!uid) throw notFoundError(target, otherUids, await findSimilarTargets(client, target, signal))
  const notes = isTruncated ? ['Older entries were dropped, because the timeline has too many.'] : []
  return { ...target, uid, source: 'journal', notes, otherUids, steps, entries }
}

/** Returns the names of existing objects of the kind that the user may have meant; none if the objects cannot be listed. */
async function findSimilarTargets(client: Client, target: TimelineTarget, signal: AbortSignal): Promise<string[]> {
  const kind = KINDS.find((candidate) => candidate.kind === target.kind) as Kind
  const { namespace, name } = target
  const items = await client.list(kind, { namespace, signal }).then(
    (list) => list.items,
    () => [],
  )
  return findSimilarNames(
    name,
    items.map(({ metadata }) => metadata.name).filter((other) => other !== name),
  )
}

export function notFoundError(
  target: TimelineTarget,
  otherUids: readonly string[],
  similarNames: readonly string[] = [],
): Error {
  const place = target.namespace ? ` in namespace ${target.namespace}` : ''
  const hint =
    otherUids.length > 0
      ? ` Objects with this name have the uids ${otherUids.join(', ')}.`
      : similarNames.length > 0
        ? ` Similar names: ${similarNames.join(', ')}.`
        : ' The journal retains records for 30 days, or less if it reaches its size limit.'
  return new Error(
    `There is no timeline of ${shortRefOf(target)}${place}${target.uid ? ` with uid ${target.uid}` : ''}.${hint}`,
  )
}
