// The revisions of a stateful set: each ControllerRevision contains one state of the pod template. Determines the revision of
// the current template, and the revisions that the history no longer needs. Pure.
import { decode, isRecord } from '../../api/decode.ts'
import { applyDefaults } from '../../api/defaults.ts'
import { type JsonObject, jsonEquals } from '../../api/json-value.ts'
import type { Stored } from '../../api/kind.ts'
import type { ControllerRevision } from '../../api/kinds/controller-revision/controller-revision-schema.ts'
import { setPodSpecDefaults } from '../../api/kinds/pod/pod-defaults.ts'
import { type PodTemplateSpec, podTemplateSpec } from '../../api/kinds/pod/pod-template-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { clone } from '../../base/clone.ts'
import { setReference } from './identity.ts'
import { revisionHash, revisionName } from './revision-name.ts'

const HASH_LABEL = 'controller.kubernetes.io/hash'

/** A revision and the template that it restores. */
export interface Revision {
  readonly name: string
  readonly template: PodTemplateSpec
}

type StoredRevision = Readonly<Stored<ControllerRevision>>

/** Whether the revision of the current template exists, is renumbered or is created. */
type RevisionAction =
  | { readonly do: 'use'; readonly revision: StoredRevision }
  /** The template is that of an older revision, which becomes the newest one. */
  | { readonly do: 'renumber'; readonly revision: StoredRevision; readonly number: number }
  | { readonly do: 'create'; readonly revision: ControllerRevision }

/** Returns the revisions in ascending order. */
export const sortRevisions = (revisions: readonly StoredRevision[]): StoredRevision[] =>
  revisions.toSorted(
    (a, b) =>
      a.revision - b.revision ||
      compareText(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '') ||
      compareText(a.metadata.name, b.metadata.name),
  )

/** Plans the current template's revision. `revisions` is sorted. */
export function planRevision(
  set: Readonly<Stored<StatefulSet>>,
  revisions: readonly StoredRevision[],
  collisionCount: number,
): RevisionAction {
  const newest = revisions.at(-1)
  if (newest && jsonEquals(newest.data as JsonObject, buildData(set))) return { do: 'use', revision: newest }
  const template = normalize(templateOfSet(set))
  const equalRevision = revisions.findLast((revision) => isSameTemplate(readTemplate(revision), template))
  const number = (newest?.revision ?? 0) + 1
  if (!equalRevision) return { do: 'create', revision: buildRevision(set, number, collisionCount) }
  if (equalRevision === newest) return { do: 'use', revision: equalRevision }
  return { do: 'renumber', revision: equalRevision, number }
}

function buildRevision(
  set: Readonly<Stored<StatefulSet>>,
  revision: number,
  collisionCount: number,
): ControllerRevision {
  const data = buildData(set)
  const hash = revisionHash(data, collisionCount)
  const { name, namespace, annotations } = set.metadata
  return {
    metadata: {
      name: revisionName(name, hash),
      namespace,
      labels: { ...templateOfSet(set).metadata?.labels, [HASH_LABEL]: hash },
      ...(annotations ? { annotations } : {}),
      ownerReferences: [setReference(set)],
    },
    data,
    revision,
  }
}

/** Builds the strategic merge patch that restores the template. */
const buildData = (set: Readonly<StatefulSet>): JsonObject => ({
  spec: { template: { ...(withEmptyFields(templateOfSet(set)) as unknown as JsonObject), $patch: 'replace' } },
})

/** Returns the template with the empty fields that Kubernetes writes, so that the names of revisions are the same. */
function withEmptyFields(template: PodTemplateSpec): PodTemplateSpec {
  const { metadata = {}, spec } = template
  const withResources = <T extends { resources?: object }>(container: T): T => ({ resources: {}, ...container })
  return {
    ...template,
    metadata,
    spec: {
      ...spec,
      containers: spec.containers.map(withResources),
      ...(spec.initContainers ? { initContainers: spec.initContainers.map(withResources) } : {}),
    },
  }
}

const templateOfSet = ({ spec }: Readonly<StatefulSet>): PodTemplateSpec =>
  spec?.template ?? { spec: { containers: [] } }

/** Reads the template that a revision restores. */
export function readTemplate({ data }: Readonly<ControllerRevision>): PodTemplateSpec {
  const spec = isRecord(data) && isRecord(data.spec) ? data.spec : {}
  const { $patch: _, ...template } = isRecord(spec.template) ? spec.template : {}
  return normalize(template)
}

/** Decodes a template and sets its defaults. Revisions of other releases may lack defaults or have empty fields. */
function normalize(template: object): PodTemplateSpec {
  const decodedTemplate = decode(podTemplateSpec, clone(template)).object
  applyDefaults(podTemplateSpec, decodedTemplate as unknown as Record<string, unknown>)
  setPodSpecDefaults(decodedTemplate.spec)
  return decodedTemplate
}

/** Whether two decoded templates are equal, apart from empty fields. */
const isSameTemplate = (a: PodTemplateSpec, b: PodTemplateSpec): boolean =>
  jsonEquals(withEmptyFields(a) as unknown as JsonObject, withEmptyFields(b) as unknown as JsonObject)

/** Returns the revisions to delete: the oldest unused ones beyond the limit. */
export function planHistory(
  set: Readonly<StatefulSet>,
  revisions: readonly StoredRevision[],
  usedNames: ReadonlySet<string>,
): readonly StoredRevision[] {
  const limit = set.spec?.revisionHistoryLimit ?? 10
  const unusedRevisions = revisions.filter(({ metadata }) => !usedNames.has(metadata.name))
  return limit < 0 ? [] : unusedRevisions.slice(0, Math.max(0, unusedRevisions.length - limit))
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
