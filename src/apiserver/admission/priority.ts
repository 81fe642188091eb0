// Resolves the priority class of a new pod to its priority and preemption policy, which later changes to the class do not
// affect; updates that omit these two fields keep them. Rejects a second default class.
import { podKind } from '../../api/kinds/pod/pod.ts'
import { findDefaultPriorityClass } from '../../api/kinds/priority-class/default-priority-class.ts'
import { priorityClassKind } from '../../api/kinds/priority-class/priority-class.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

export const priority: AdmissionPlugin = {
  name: 'Priority',
  mutate(request) {
    const { operation, resource, subresource, object, oldObject } = request
    if (subresource !== '' || resource.kind.group !== podKind.group || resource.plural !== podKind.plural) return
    if (!object?.spec) return
    if (operation === 'CREATE') setPriority(request, object.spec)
    else if (operation === 'UPDATE') restorePriority(object.spec, oldObject?.spec ?? {})
  },
  validate({ operation, resource, subresource, name, object, list }) {
    if (subresource !== '' || resource.group !== priorityClassKind.group) return undefined
    if (resource.plural !== priorityClassKind.plural || operation === 'DELETE' || !object?.globalDefault)
      return undefined
    const defaultName = findDefaultPriorityClass(list(priorityClassKind))?.metadata.name
    if (defaultName !== undefined && defaultName !== name)
      throw forbidden(
        resource,
        name,
        `PriorityClass ${defaultName} is already marked as default. Only one default can exist`,
      )
    return undefined
  },
}

function setPriority(request: AdmissionRequest, spec: AnyObject): void {
  const rejectionOf = (message: string) => forbidden(request.resource, request.name, message)
  const { name, value, preemptionPolicy } = resolveClass(request, spec.priorityClassName, rejectionOf)
  if (name !== undefined) spec.priorityClassName = name
  if (spec.priority !== undefined && spec.priority !== value) {
    throw rejectionOf(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; ` +
        `priority admission controller computed ${value} from the given PriorityClass name`,
    )
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    throw rejectionOf(
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; ` +
        `priority admission controller computed ${preemptionPolicy} from the given PriorityClass name`,
    )
  }
  spec.priority = value
  spec.preemptionPolicy = preemptionPolicy
}

interface ResolvedClass {
  /** Undefined if the pod names no class and there is no default. */
  readonly name: string | undefined
  readonly value: number
  readonly preemptionPolicy: string
}

function resolveClass(
  { find, list }: AdmissionRequest,
  name: string | undefined,
  rejectionOf: (message: string) => Error,
): ResolvedClass {
  const className = name || findDefaultPriorityClass(list(priorityClassKind))?.metadata.name
  if (className === undefined) return NO_CLASS
  // `find` makes the store repeat the transaction if the class is deleted before the pod is stored.
  const priorityClass = find(priorityClassKind, '', className)
  if (!priorityClass) {
    if (!name) return NO_CLASS
    throw rejectionOf(`no PriorityClass with name ${name} was found`)
  }
  const { value, preemptionPolicy = NO_CLASS.preemptionPolicy } = priorityClass
  return { name: className, value, preemptionPolicy }
}

const NO_CLASS: ResolvedClass = { name: undefined, value: 0, preemptionPolicy: 'PreemptLowerPriority' }

/** Restores values that the update omits. Validation rejects other changes to them. */
function restorePriority(spec: AnyObject, oldSpec: AnyObject): void {
  if (spec.priority === undefined && oldSpec.priority !== undefined) spec.priority = oldSpec.priority
  if (spec.preemptionPolicy === undefined && oldSpec.preemptionPolicy !== undefined)
    spec.preemptionPolicy = oldSpec.preemptionPolicy
}
