// POST: one new object. Everything that can refuse it is decided inside the transaction that stores it.
import { applyDefaults } from '../../api/defaults.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { ManagedFieldsEntry } from '../../api/kinds/shared/meta-schema.ts'
import { validateMeta } from '../../api/meta.ts'
import { alreadyExists, badRequest, generateNameTaken, invalid } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import { generateName, randomUuid } from '../../base/identifiers.ts'
import type { TransactionView } from '../../store/index.ts'
import { trackCreated } from '../objects/managed-fields.ts'
import { encodeStored } from '../objects/stored-object.ts'
import {
  admissionRequest,
  type Decided,
  keyOf,
  type ObjectDeps,
  putOf,
  ruleContext,
  storedOf,
  timestamp,
  transactOne,
  type WriteTarget,
  type Written,
  writesOf,
} from '../objects/write-deps.ts'

/** How often a generated name is tried before the client is told to try again. */
const GENERATED_NAME_TRIES = 8

export async function createObject(deps: ObjectDeps, target: WriteTarget, body: KubeObject): Promise<Written> {
  checkBody(target, body)
  return transactOne(deps, target, (view) => decideCreate(deps, target, body, view))
}

/** The transaction of a create; also used when an update or an apply creates, which brings its `owners`. */
export function decideCreate(
  deps: ObjectDeps,
  target: WriteTarget,
  body: KubeObject,
  view: TransactionView,
  owners?: readonly ManagedFieldsEntry[],
): Decided {
  const { resource } = target
  const { kind } = resource
  const context = ruleContext(deps)
  const object: any = clone(body)
  const name = chooseName(deps, target, object, view)
  const { metadata } = object
  metadata.name = name
  if (kind.namespaced) metadata.namespace = target.namespace
  else delete metadata.namespace // manifests in the wild give one to cluster-scoped objects; it means nothing
  metadata.uid = randomUuid(deps.random)
  metadata.creationTimestamp = timestamp(context.nowMs)
  for (const field of SERVER_OWNED) delete metadata[field]
  if (kind.generationOf) object.metadata.generation = 1
  if (kind.status && !kind.status.keptOnCreate) delete object.status

  applyDefaults(kind.type, object)
  kind.defaults?.(object)
  if (owners) metadata.managedFields = owners
  else trackCreated(deps, target, object)
  const admitted = { operation: 'CREATE', name, object, old: undefined } as const
  const request = admissionRequest(deps, view, target, admitted)
  deps.admission.mutate(request)
  kind.prepareForCreate?.(object, context)

  const errors = new FieldErrors()
  validateMeta(kind, object.metadata, errors)
  kind.validate(object, errors, context)
  if (errors.any) throw invalid(kind, name, errors.list)

  const stored = storedOf(resource, object)
  const more = deps.admission.validate({ ...request, object: stored, after: stored })
  const key = keyOf({ ...target, name })
  // Last, as it is for clients used to it: a bad object is bad whether or not its name is taken.
  if (view.get(key)) throw alreadyExists(resource, name)
  const value = encodeStored(stored)
  return {
    writes: writesOf(putOf(deps, resource, key, stored, value), more),
    written: { value, revision: 0, created: true, deleted: false, warnings: kind.warnings?.(object, undefined) ?? [] },
  }
}

const SERVER_OWNED = [
  'resourceVersion',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'selfLink',
  'managedFields',
] as const

export function checkBody(target: WriteTarget, body: KubeObject): void {
  const { namespace, resourceVersion } = body.metadata
  if (target.resource.kind.namespaced && namespace && namespace !== target.namespace) {
    throw badRequest(
      `the namespace of the provided object does not match the namespace sent on the request: "${namespace}" is not "${target.namespace}"`,
    )
  }
  if (resourceVersion && resourceVersion !== '0') {
    throw badRequest('resourceVersion should not be set on objects to be created')
  }
}

function chooseName(deps: ObjectDeps, target: WriteTarget, object: KubeObject, view: TransactionView): string {
  if (target.name) return target.name
  const { name, generateName: prefix } = object.metadata
  if (name || !prefix) return name ?? ''
  for (let tries = 0; tries < GENERATED_NAME_TRIES; tries++) {
    const candidate = generateName(prefix, deps.random)
    if (!view.get(keyOf({ ...target, name: candidate }))) return candidate
  }
  throw generateNameTaken(target.resource, prefix)
}
