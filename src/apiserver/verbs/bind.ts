// POST pods/NAME/binding: assigns a pod to a node. The assignment cannot be changed.
import { FieldErrors } from '../../api/field-errors.ts'
import { type Binding, binding } from '../../api/kinds/pod/pod-schema.ts'
import { validateMeta } from '../../api/meta.ts'
import { badRequest, conflict, invalid, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { TransactionView } from '../../store/index.ts'
import { checkKind, decodeAs, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { type AnyObject, type ObjectDeps, ruleContext } from '../objects/object-deps.ts'
import { encodeStored } from '../objects/stored-object.ts'
import { keyOf, NO_WARNINGS, type WritePlan, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'

export function bindVerb(target: WriteTarget, body: RequestBody, validation: FieldValidation): WriteVerb {
  checkKind(body, 'Binding')
  const { object } = decodeAs<Binding>(body, binding, 'Binding in version "v1"', validation)
  checkBinding(target, object)
  return { do: 'bind', target, binding: object, warnings: NO_WARNINGS }
}

function checkBinding(target: WriteTarget, { metadata, target: node }: Binding): void {
  if (metadata?.name && metadata.name !== target.name) {
    throw badRequest(`the name of the binding (${metadata.name}) does not match the name on the URL (${target.name})`)
  }
  if (!node?.name) throw badRequest('Binding: target.name is required: the node to assign the pod to')
  if (node.kind && node.kind !== 'Node') {
    throw badRequest(`Binding: target.kind must be Node, not ${JSON.stringify(node.kind).slice(0, 100)}`)
  }
}

export function planBinding(
  deps: ObjectDeps,
  target: WriteTarget,
  { metadata, target: node }: Binding,
  view: TransactionView,
): WritePlan {
  const entry = view.get(keyOf(target))
  if (!entry) throw notFound(target.resource, target.name)
  const old: AnyObject = deps.objects.decode(entry)
  const conflictError = (reason: string) => conflict(target.resource, target.name, reason)
  if (metadata?.uid && metadata.uid !== old.metadata.uid) {
    throw conflictError(
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${old.metadata.uid}`,
    )
  }
  if (old.metadata.deletionTimestamp)
    throw conflictError(`pod ${target.name} is being deleted, cannot be assigned to a host`)
  if (old.spec.nodeName)
    throw conflictError(`pod ${target.name} is already assigned to node ${JSON.stringify(old.spec.nodeName)}`)
  if (old.spec.schedulingGates?.length > 0)
    throw conflictError(`pod ${target.name} has non-empty .spec.schedulingGates`)
  const boundPod = clone(old)
  boundPod.spec.nodeName = node?.name // does not change metadata.generation: the user's part of the spec is the same
  if (metadata?.annotations)
    boundPod.metadata.annotations = { ...boundPod.metadata.annotations, ...metadata.annotations }
  const { nominatedNodeName: _, ...status } = boundPod.status ?? {}
  boundPod.status = { ...status, conditions: withPodScheduled(status.conditions ?? [], deps.clock.nowMs()) }
  const errors = new FieldErrors()
  validateMeta(target.resource.kind, boundPod.metadata, errors)
  target.resource.kind.validate(boundPod, errors, ruleContext(deps), old)
  if (errors.hasErrors) throw invalid(target.resource.kind, target.name, errors.list)
  const value = encodeStored(boundPod)
  return {
    writes: [{ put: keyOf(target), value }],
    result: { value, revision: 0, created: false, deleted: false, warnings: NO_WARNINGS },
    change: { before: old, after: boundPod },
  }
}

function withPodScheduled(conditions: readonly { type: string }[], nowMs: number): { type: string }[] {
  const condition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: undefined,
    lastTransitionTime: timestamp(nowMs),
  }
  return [...conditions.filter(({ type }) => type !== 'PodScheduled'), condition]
}
