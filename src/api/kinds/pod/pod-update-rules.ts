// Validates changes to a pod. Images and tolerationSeconds can change, activeDeadlineSeconds can be set or shortened, tolerations
// can be added, schedulingGates can be removed, and a negative terminationGracePeriodSeconds can be set to 1. gated-pod-rules.ts
// validates the placement of a gated pod. A Binding sets nodeName.
import { isDeepStrictEqual } from 'node:util'
import type { FieldErrors } from '../../field-errors.ts'
import { changedFields, describeChanges, isSameValue } from '../shared/changed-fields.ts'
import type { Container } from './container-schema.ts'
import { oldPlacement, validateNarrowedPlacement } from './gated-pod-rules.ts'
import { type Pod, type PodSpec, podSpec, type Toleration } from './pod-schema.ts'

export function validatePodUpdate(next: Pod, old: Pod, errors: FieldErrors): void {
  if (isSameSpec(next, old)) return
  const newSpec = next.spec ?? { containers: [] }
  const oldSpec = old.spec ?? { containers: [] }
  for (const part of ['containers', 'initContainers'] as const) {
    if ((newSpec[part]?.length ?? 0) === (oldSpec[part]?.length ?? 0)) continue
    errors.forbidden(`spec.${part}`, 'pod updates may not add or remove containers')
    return
  }
  validateDeadline(newSpec, oldSpec, errors)
  validateAddedTolerations(newSpec.tolerations ?? [], oldSpec.tolerations ?? [], errors)
  validateRemovedGates(newSpec, oldSpec, errors)
  if (isGated(oldSpec)) validateNarrowedPlacement(newSpec, oldSpec, errors)
  const rejectedChanges = changedFields(podSpec, oldSpec, withOldMutableFields(newSpec, oldSpec))
  if (rejectedChanges.length > 0) {
    errors.forbidden('spec', `${IMMUTABLE_MESSAGE}\n${describeChanges(rejectedChanges)}`)
  }
}

const IMMUTABLE_MESSAGE = `pod updates may not change fields other than ${[
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',')}`

const isGated = ({ schedulingGates = [] }: PodSpec): boolean => schedulingGates.length > 0

/** Returns the new spec with the old values of all mutable fields, so that all remaining differences are forbidden. */
function withOldMutableFields(newSpec: PodSpec, oldSpec: PodSpec): PodSpec {
  const { terminationGracePeriodSeconds: oldSeconds = 0 } = oldSpec
  const isGracePeriodFixed = oldSeconds < 0 && newSpec.terminationGracePeriodSeconds === 1
  return {
    ...newSpec,
    containers: withOldImages(oldSpec.containers, newSpec.containers),
    initContainers: newSpec.initContainers && withOldImages(oldSpec.initContainers ?? [], newSpec.initContainers),
    activeDeadlineSeconds: oldSpec.activeDeadlineSeconds,
    tolerations: oldSpec.tolerations,
    schedulingGates: oldSpec.schedulingGates,
    terminationGracePeriodSeconds: isGracePeriodFixed ? oldSeconds : newSpec.terminationGracePeriodSeconds,
    ...(isGated(oldSpec) ? oldPlacement(oldSpec, newSpec) : {}),
  } as PodSpec
}

const withOldImages = (oldContainers: readonly Container[], newContainers: readonly Container[]): Container[] =>
  newContainers.map((container, index) => ({ ...container, image: oldContainers[index]?.image }) as Container)

/** Validates that a deadline is only set or shortened. */
function validateDeadline(newSpec: PodSpec, oldSpec: PodSpec, errors: FieldErrors): void {
  const field = 'spec.activeDeadlineSeconds'
  const { activeDeadlineSeconds: newSeconds } = newSpec
  const { activeDeadlineSeconds: oldSeconds } = oldSpec
  if (oldSeconds === undefined) return
  if (newSeconds === undefined) errors.invalid(field, null, 'must not update from a positive integer to nil value')
  else if (newSeconds > oldSeconds) errors.invalid(field, newSeconds, 'must be less than or equal to previous value')
}

function validateAddedTolerations(
  newTolerations: readonly Toleration[],
  oldTolerations: readonly Toleration[],
  errors: FieldErrors,
): void {
  const newKeys = new Set(newTolerations.map(tolerationKey))
  if (oldTolerations.every((toleration) => newKeys.has(tolerationKey(toleration)))) return
  errors.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')
}

const tolerationKey = ({ key = '', operator, value = '', effect }: Toleration): string =>
  JSON.stringify([key, operator, value, effect])

function validateRemovedGates(newSpec: PodSpec, oldSpec: PodSpec, errors: FieldErrors): void {
  const oldNames = new Set(oldSpec.schedulingGates?.map(({ name }) => name))
  for (const [index, { name }] of (newSpec.schedulingGates ?? []).entries()) {
    if (oldNames.has(name)) continue
    const field = `spec.schedulingGates[${index}].name`
    errors.forbidden(field, `only deletion is allowed, but found new scheduling gate '${name}'`)
  }
}

/** Returns whether the spec is unchanged. Tries the cheaper comparison first. */
export const isSameSpec = (next: Pod, old: Pod): boolean =>
  isDeepStrictEqual(next.spec, old.spec) || isSameValue(podSpec, old.spec, next.spec)
