// Validates changes of a pod. Images can change, activeDeadlineSeconds can be set or shortened, tolerations can be added and
// schedulingGates can be removed. gated-pod-rules.ts validates the placement of a gated pod. A Binding sets nodeName.
import { isDeepStrictEqual } from 'node:util'
import type { FieldErrors } from '../../field-errors.ts'
import { changedFields, describeChanges, isSameValue } from '../shared/changed-fields.ts'
import type { Container } from './container-schema.ts'
import { oldPlacement, validateNarrowedPlacement } from './gated-pod-rules.ts'
import { type Pod, type PodSpec, podSpec, type Toleration } from './pod-schema.ts'

export function validatePodUpdate(next: Pod, old: Pod, errors: FieldErrors): void {
  if (isSameSpec(next, old)) return
  const after = next.spec ?? { containers: [] }
  const before = old.spec ?? { containers: [] }
  for (const part of ['containers', 'initContainers'] as const) {
    if ((after[part]?.length ?? 0) === (before[part]?.length ?? 0)) continue
    errors.forbidden(`spec.${part}`, 'pod updates may not add or remove containers')
    return
  }
  validateDeadline(after, before, errors)
  validateAddedTolerations(after.tolerations ?? [], before.tolerations ?? [], errors)
  validateRemovedGates(after, before, errors)
  if (isGated(before)) validateNarrowedPlacement(after, before, errors)
  const rejectedChanges = changedFields(podSpec, before, withOldMutableFields(after, before))
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
function withOldMutableFields(after: PodSpec, before: PodSpec): PodSpec {
  const { terminationGracePeriodSeconds: oldSeconds = 0 } = before
  const isGracePeriodFixed = oldSeconds < 0 && after.terminationGracePeriodSeconds === 1
  return {
    ...after,
    containers: withOldImages(before.containers, after.containers),
    initContainers: after.initContainers && withOldImages(before.initContainers ?? [], after.initContainers),
    activeDeadlineSeconds: before.activeDeadlineSeconds,
    tolerations: before.tolerations,
    schedulingGates: before.schedulingGates,
    terminationGracePeriodSeconds: isGracePeriodFixed ? oldSeconds : after.terminationGracePeriodSeconds,
    ...(isGated(before) ? oldPlacement(before, after) : {}),
  } as PodSpec
}

const withOldImages = (before: readonly Container[], after: readonly Container[]): Container[] =>
  after.map((container, index) => ({ ...container, image: before[index]?.image }) as Container)

/** Validates that a deadline is only set or shortened. */
function validateDeadline(after: PodSpec, before: PodSpec, errors: FieldErrors): void {
  const field = 'spec.activeDeadlineSeconds'
  const { activeDeadlineSeconds: next } = after
  const { activeDeadlineSeconds: old } = before
  if (old === undefined) return
  if (next === undefined) errors.invalid(field, null, 'must not update from a positive integer to nil value')
  else if (next > old) errors.invalid(field, next, 'must be less than or equal to previous value')
}

function validateAddedTolerations(
  after: readonly Toleration[],
  before: readonly Toleration[],
  errors: FieldErrors,
): void {
  const keptTolerations = new Set(after.map(tolerationKey))
  if (before.every((toleration) => keptTolerations.has(tolerationKey(toleration)))) return
  errors.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')
}

const tolerationKey = ({ key = '', operator, value = '', effect }: Toleration): string =>
  JSON.stringify([key, operator, value, effect])

function validateRemovedGates(after: PodSpec, before: PodSpec, errors: FieldErrors): void {
  const oldNames = new Set(before.schedulingGates?.map(({ name }) => name))
  for (const [index, { name }] of (after.schedulingGates ?? []).entries()) {
    if (oldNames.has(name)) continue
    const field = `spec.schedulingGates[${index}].name`
    errors.forbidden(field, `only deletion is allowed, but found new scheduling gate '${name}'`)
  }
}

/** Returns whether the spec is unchanged. Tries the cheaper comparison first. */
export const isSameSpec = (next: Pod, old: Pod): boolean =>
  isDeepStrictEqual(next.spec, old.spec) || isSameValue(podSpec, old.spec, next.spec)
