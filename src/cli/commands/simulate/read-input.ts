// Reads a simulation's files: pods and claims, including those of workloads, and the objects that replace or
// extend those of the cluster.
import type { Kind, Stored } from '../../../api/kind.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { keyOfObject } from '../../../client/index.ts'
import { SNAPSHOT_KINDS, type Snapshot, type SnapshotList } from '../../../diagnosis/index.ts'
import { type DecodeContext, decodeManifest } from '../../manifests/decode-manifest.ts'
import { type Manifest, parseManifests, readManifests } from '../../manifests/read-manifests.ts'
import { expandWorkload, WORKLOAD_KINDS } from './workloads.ts'

export interface SimulationInput {
  readonly pods: Snapshot['pods']
  readonly claims: Snapshot['claims']
  /** Objects that replace those of the same name, or are added. */
  readonly overrides: readonly Override[]
  /** Objects that a simulation ignores, as KIND/NAME. */
  readonly skipped: readonly string[]
}

export interface Override {
  readonly list: SnapshotList
  readonly object: Readonly<Stored>
}

interface InputFiles {
  readonly filename?: readonly string[]
  /** Manifests that are not in a file. */
  readonly manifests?: string
  readonly setClass?: readonly string[]
  readonly quota?: readonly string[]
}

/** The lists with objects that --filename may replace or extend. */
const OVERRIDE_LISTS = ['classes', 'attributesClasses', 'volumes', 'capacities', 'quotas', 'limitRanges'] as const
const CLASS_LISTS = ['classes', 'capacities'] as const
const QUOTA_LISTS = ['quotas'] as const

export async function readInput(files: InputFiles, context: DecodeContext): Promise<SimulationInput> {
  const { filename = [], setClass = [], quota = [] } = files
  const given = files.manifests === undefined ? [] : await parseManifests('manifests', files.manifests)
  const manifests = [...(await readManifests(filename)), ...given].flatMap(expandWorkload)
  const sources = files.manifests === undefined ? filename : [...filename, 'manifests']
  const pods = decodeAll('pods', manifests, context) as Snapshot['pods']
  const claims = decodeAll('claims', manifests, context) as Snapshot['claims']
  if (sources.length > 0 && pods.length === 0)
    throw new UsageError(
      `${sources.join(', ')}: no pods: expected a Pod, or a ${WORKLOAD_KINDS.join(', ')} with replicas`,
    )
  const skipped = manifests
    .filter(({ kind }) => listOf(kind, ['pods', 'claims', ...OVERRIDE_LISTS]) === undefined)
    .map(({ kind, value }) => `${kind}/${(value.metadata as { name?: string } | undefined)?.name ?? ''}`)
  const overrides = [
    ...readOverrides(manifests, OVERRIDE_LISTS, context),
    ...readOverrides(await readManifestsOf('--set-class', setClass, CLASS_LISTS), CLASS_LISTS, context),
    ...readOverrides(await readManifestsOf('--quota', quota, QUOTA_LISTS), QUOTA_LISTS, context),
  ]
  return { pods, claims, overrides, skipped }
}

const listOf = (kind: string, lists: readonly SnapshotList[]): SnapshotList | undefined =>
  lists.find((list) => SNAPSHOT_KINDS[list].kind === kind)

function decodeAll(
  list: SnapshotList,
  manifests: readonly Manifest[],
  context: DecodeContext,
): readonly Readonly<Stored>[] {
  const sources = new Map<string, string>()
  return manifests
    .filter(({ kind }) => SNAPSHOT_KINDS[list].kind === kind)
    .map((manifest) => {
      const object = decodeManifest(SNAPSHOT_KINDS[list] as unknown as Kind, manifest, context)
      const key = keyOfObject(object)
      const first = sources.get(key)
      if (first) throw new UsageError(`${manifest.source}: ${manifest.kind} ${key} is already in ${first}`)
      sources.set(key, manifest.source)
      return object
    })
}

const readOverrides = (
  manifests: readonly Manifest[],
  lists: readonly SnapshotList[],
  context: DecodeContext,
): Override[] =>
  lists.flatMap((list) =>
    decodeAll(list, manifests, context).map((object) => ({ list, object: withPhase(list, object) })),
  )

/** Gives a volume the phase that the binding controller would set. Other objects are returned unchanged. */
const withPhase = (list: SnapshotList, object: Readonly<Stored>): Readonly<Stored> =>
  list === 'volumes' ? ({ ...object, status: { phase: 'Available' } } as Readonly<Stored>) : object

async function readManifestsOf(
  flag: string,
  files: readonly string[],
  lists: readonly SnapshotList[],
): Promise<Manifest[]> {
  const manifests = await readManifests(files)
  const kinds = lists.map((list) => SNAPSHOT_KINDS[list].kind)
  const unexpected = manifests.find(({ kind }) => !kinds.includes(kind))
  if (unexpected)
    throw new UsageError(`${unexpected.source}: ${flag} expects ${kinds.join(' and ')}, not ${unexpected.kind}`)
  return manifests
}
