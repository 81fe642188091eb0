// Finds the objects that a violation is about: those named in its text, and those that refer to them, or to which they
// refer, at the end of the run (a claim's volume, a volume's claim, attachments, owners). Trace lines about other objects can be
// omitted.

import type { SimulationRun, Violation } from '../engine/run-plan.ts'
import type { Plan } from '../plan/plan.ts'

export interface RelatedObjects {
  readonly names: ReadonlySet<string>
  /** Whether a text mentions any of them; true for an empty set. */
  isMentionedIn(text: string): boolean
}

export function findRelatedObjects(run: SimulationRun, violation: Violation): RelatedObjects {
  const knownNames = new Set([...listNames(run.plan), ...Object.keys(run.objects ?? {}).map(nameInTitle)])
  const names = new Set(splitWords(violation.text).filter((word) => knownNames.has(word) || isUnambiguous(word)))
  const objects = Object.entries(run.objects ?? {}).map(([title, object]) => ({
    name: nameInTitle(title),
    references: listReferences(object as NamedObject),
  }))
  for (const { name, references } of objects) {
    if (names.has(name)) for (const other of references) names.add(other)
  }
  for (const { name, references } of objects) if (references.some((other) => names.has(other))) names.add(name)
  const pattern = names.size > 0 ? createMentionPattern([...names]) : undefined
  return { names, isMentionedIn: (text) => pattern === undefined || pattern.test(text) }
}

/** Returns `team-a/c1` for `claim team-a/c1`, and `v-3` for `net.sim volume v-3`. */
export const nameInTitle = (title: string): string => title.slice(title.lastIndexOf(' ') + 1)

const splitWords = (text: string): string[] =>
  text.split(/[^\w./-]+/).map((word) => word.replace(/^[./-]+|[./-]+$/g, ''))

/** Whether a word can only be a name: `team-a/c1`, `pvc-6c9f…`, `csi-…`. */
const isUnambiguous = (word: string): boolean =>
  /^[a-z0-9-]+\/[a-z0-9.-]+$/.test(word) || /^(pvc|csi)-[0-9a-f]/.test(word)

function listNames({ steps }: Plan): string[] {
  return steps.flatMap(({ action }) => {
    if ('ref' in action) return [keyOf(action.ref)]
    return 'object' in action ? [keyOf((action.object as NamedObject).metadata)] : []
  })
}

interface NamedObject {
  /** The name of a driver volume. */
  readonly name?: string
  readonly metadata?: {
    readonly namespace?: string
    readonly name?: string
    readonly uid?: string
    readonly ownerReferences?: readonly { readonly name?: string }[]
  }
  readonly spec?: {
    readonly volumeName?: string
    readonly claimRef?: { readonly namespace?: string; readonly name?: string }
    readonly csi?: { readonly volumeHandle?: string }
    readonly source?: { readonly persistentVolumeName?: string }
    readonly volumes?: readonly { readonly name?: string; readonly persistentVolumeClaim?: { claimName?: string } }[]
  }
}

const keyOf = (ref: { namespace?: string; name?: string } = {}): string =>
  ref.namespace ? `${ref.namespace}/${ref.name ?? ''}` : (ref.name ?? '')

/** Returns the objects that an object refers to. Nodes and classes are omitted: too many objects refer to them. */
function listReferences({ name: driverName, metadata, spec = {} }: NamedObject): string[] {
  const claims = spec.volumes?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []) ?? []
  return [
    driverName,
    spec.volumeName,
    spec.claimRef && keyOf(spec.claimRef),
    spec.csi?.volumeHandle,
    spec.source?.persistentVolumeName,
    metadata?.uid && `pvc-${metadata.uid}`,
    ...claims.map((name) => keyOf({ ...metadata, name })),
    ...(metadata?.ownerReferences ?? []).map(({ name }) => name && keyOf({ ...metadata, name })),
  ].filter((name): name is string => Boolean(name))
}

function createMentionPattern(names: readonly string[]): RegExp {
  const alternatives = names.map((name) => name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|')
  return new RegExp(`(?<![\\w./-])(?:${alternatives})(?![\\w/-]|\\.\\w)`)
}
