// What the verbs that write share: who asks, through which resource, and the pieces they are built from.

import type { FeatureGates } from '../../api/feature-gates.ts'
import type { ExpansionQuota, KubeObject, RuleContext } from '../../api/kind.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Store, TransactionView, Write } from '../../store/index.ts'
import type { AdmissionChain, AdmissionRequest, ObjectWrite } from '../admission/index.ts'
import { objectKey } from '../keys.ts'
import type { Resource, Resources } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'
import { RunningWrite, runningOr } from './running-write.ts'
import { encodeStored, type Shared, type StoredObjects } from './stored-object.ts'

export interface ObjectDeps {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly gates: FeatureGates
  readonly expansionQuota: ExpansionQuota
  readonly objects: StoredObjects
  readonly resources: Resources
  readonly admission: AdmissionChain
  /** Whether objects record which client set which field. An apply always does. */
  readonly trackManagedFields: boolean
}

/** Which object a write is about, and on whose behalf. */
export interface WriteTarget {
  readonly resource: Resource
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  readonly user: UserInfo
  readonly dryRun: boolean
  /** Whose fields these will be; absent: the server's own. */
  readonly fieldManager?: string
}

/** The stored outcome of a write: bytes as in the store, and the revision they have (0 for a dry-run create). */
export interface Written {
  readonly value: Uint8Array
  readonly revision: number
  readonly created: boolean
  /** The object is gone: this was its last state. */
  readonly deleted: boolean
  readonly warnings: readonly string[]
}

/** What a verb does inside a transaction. The outcome's revision is 0 where it will be that of the first write. */
export interface Decided {
  /** The object's own first, then what admission adds. */
  readonly writes: readonly Write[]
  readonly written: Written
}

/** One verb as a transaction of its own; commit.ts makes one of several. */
export async function transactOne(
  deps: ObjectDeps,
  target: WriteTarget,
  decide: (view: TransactionView) => Decided,
): Promise<Written> {
  let decided: Decided | undefined
  const { revisions } = await deps.store.transact((view) => {
    decided = decide(view)
    return target.dryRun ? [] : decided.writes
  })
  const { written } = decided!
  return { ...written, revision: written.revision || (revisions[0] ?? 0) }
}

export const ruleContext = ({ clock, gates, expansionQuota }: ObjectDeps): RuleContext => ({
  nowMs: clock.nowMs(),
  gates,
  expansionQuota,
})

export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000)
  if (second !== lastTimestamp.second) {
    lastTimestamp = { second, text: `${new Date(second * 1000).toISOString().slice(0, 19)}Z` }
  }
  return lastTimestamp.text
}
/** Most writes of a second ask for the same text. */
let lastTimestamp = { second: 0, text: '1970-01-01T00:00:00Z' }

/** The object as the requested kind shows it: itself, or the face of what is stored. */
export const faceOf = (resource: Resource, stored: Shared): any => resource.kind.viewOf?.fromStored(stored) ?? stored
export const storedOf = (resource: Resource, object: any): KubeObject =>
  resource.kind.viewOf?.toStored(object) ?? object

export function admissionRequest(
  deps: ObjectDeps,
  view: TransactionView,
  target: WriteTarget,
  { operation, name, object, old, after }: Pick<AdmissionRequest, 'operation' | 'name' | 'object' | 'old' | 'after'>,
): AdmissionRequest {
  return {
    operation,
    name,
    object,
    old,
    after,
    resource: target.resource,
    subresource: target.subresource,
    namespace: target.namespace,
    user: target.user,
    dryRun: target.dryRun,
    nowMs: deps.clock.nowMs(),
    gates: deps.gates,
    find: remembering((group, plural, namespace, name) => {
      const entry = view.get(`${group || 'core'}/${plural}/${namespace ? `${namespace}/` : ''}${name}`)
      return entry && deps.objects.decode(entry)
    }),
    list: (group, plural, namespace) => {
      const prefix = `${group || 'core'}/${plural}/${namespace ? `${namespace}/` : ''}`
      return view.list(prefix).map((entry) => deps.objects.decode(entry))
    },
    listRunning: (group, plural, namespace) =>
      view.list(`${group || 'core'}/${plural}/${namespace}/`).map((entry) => runningOr(entry, deps.objects)),
  }
}

/** Rules ask for the same few objects one after the other, and a transaction sees them as they are throughout. */
function remembering(find: AdmissionRequest['find']): AdmissionRequest['find'] {
  const answers: { readonly of: Parameters<typeof find>; readonly object: Shared | undefined }[] = []
  return (group, plural, namespace, name) => {
    for (const { of, object } of answers) {
      if (of[3] === name && of[1] === plural && of[2] === namespace && of[0] === group) return object
    }
    const object = find(group, plural, namespace, name)
    if (answers.length < REMEMBERED_MAX) answers.push({ of: [group, plural, namespace, name], object })
    return object
  }
}
const REMEMBERED_MAX = 4

/** The writes of a transaction: the object itself, then what admission adds. */
export const writesOf = (main: Write, more: readonly ObjectWrite[]): Write[] => [
  main,
  ...more.map(({ group, plural, namespace, name, object, running }) => {
    const key = `${group || 'core'}/${plural}/${namespace ? `${namespace}/` : ''}${name}`
    if (running) return new RunningWrite(key, running)
    return object ? { put: key, value: encodeStored(object) } : { delete: key }
  }),
]

export const keyOf = ({ resource, namespace, name }: WriteTarget): string => objectKey(resource.stored, namespace, name)

/** A put of an object in stored form, with the moment it expires if its kind does. */
export function putOf(deps: ObjectDeps, resource: Resource, key: string, object: KubeObject, value: Uint8Array): Write {
  const expiresAtMs = resource.stored.expiresAtMs?.(object, ruleContext(deps))
  return expiresAtMs === undefined ? { put: key, value } : { put: key, value, expiresAtMs }
}
