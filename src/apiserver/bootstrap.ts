// Creates the built-in namespaces and priority classes and, in a new store, the initial objects, before the first client
// connects. A built-in class that was deleted, or replaced by one with another value or policy, is restored. Safe to run
// at every start and on several servers at once.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { BUILT_IN_PRIORITY_CLASSES } from '../api/kinds/priority-class/built-in-classes.ts'
import { priorityClassKind } from '../api/kinds/priority-class/priority-class.ts'
import type { PriorityClass } from '../api/kinds/priority-class/priority-class-schema.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../api/status-error.ts'
import { BUILT_IN_NAMESPACES } from './admission/index.ts'
import { objectKey } from './keys.ts'
import type { ObjectDeps } from './objects/object-deps.ts'
import { NO_WARNINGS } from './objects/write-verb.ts'
import type { UserInfo } from './security/index.ts'
import { executeWrite } from './verbs/execute.ts'

/** The user of the server's own writes. */
export const SYSTEM_USER: UserInfo = { name: 'system:apiserver', groups: ['system:masters'] }

/** An object that is created in a new store. It is not recreated after its deletion. */
export interface InitialObject {
  readonly kind: Kind
  readonly object: KubeObject
}

/** Creates the default namespace last: a store without it counts as new, even after a crash during bootstrap. */
export async function createBuiltIns(deps: ObjectDeps, initialObjects: readonly InitialObject[] = []): Promise<void> {
  const isNew = (await deps.store.get(objectKey(namespaceKind, '', LAST_NAMESPACE))) === undefined
  if (isNew) await Promise.all(initialObjects.map(({ kind, object }) => createIfAbsent(deps, kind, object)))
  const otherNamespaces = BUILT_IN_NAMESPACES.filter((name) => name !== LAST_NAMESPACE)
  await Promise.all([
    ...otherNamespaces.map((name) => createIfAbsent(deps, namespaceKind, { metadata: { name } })),
    ...BUILT_IN_PRIORITY_CLASSES.map((builtIn) => restorePriorityClass(deps, builtIn)),
  ])
  await createIfAbsent(deps, namespaceKind, { metadata: { name: LAST_NAMESPACE } })
}

const LAST_NAMESPACE = 'default'

/** The value and policy of a class are immutable, so a class that differs is deleted first. */
async function restorePriorityClass(deps: ObjectDeps, builtIn: PriorityClass): Promise<void> {
  const { name = '' } = builtIn.metadata
  const entry = await deps.store.get(objectKey(priorityClassKind, '', name))
  const stored = entry && (deps.objects.decode(entry) as Readonly<Stored<PriorityClass>>)
  if (stored && stored.value === builtIn.value && stored.preemptionPolicy === builtIn.preemptionPolicy) return
  const resource = deps.resources.findPreferred(priorityClassKind.group, priorityClassKind.plural)
  if (stored && resource) {
    const target = { resource, namespace: '', name, subresource: '', user: SYSTEM_USER, dryRun: false }
    const { uid } = stored.metadata
    const options = {
      dryRun: false,
      uid,
      gracePeriodSeconds: undefined,
      propagationPolicy: undefined,
      resourceVersion: undefined,
    }
    try {
      await executeWrite(deps, { do: 'delete', target, options, warnings: NO_WARNINGS })
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error // otherwise another server restores the class
    }
  }
  await createIfAbsent(deps, priorityClassKind, builtIn)
}

async function createIfAbsent(deps: ObjectDeps, kind: Kind, object: KubeObject): Promise<void> {
  const resource = deps.resources.findPreferred(kind.group, kind.plural)
  if (!resource) return
  const target = { resource, namespace: '', name: '', subresource: '', user: SYSTEM_USER, dryRun: false }
  try {
    await executeWrite(deps, { do: 'create', target, body: object, warnings: NO_WARNINGS })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
