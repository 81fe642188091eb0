// Validates changes of a pod. Mutable are images, activeDeadlineSeconds (only shorter), tolerations (only more) and
// schedulingGates (only fewer); while gated, placement can be narrowed (gated-pod-rules.ts). nodeName is set by a Binding.
import { isDeepStrictEqual } from 'node:util'
import type { FieldErrors } from '../../field-errors.ts'
import { changedFields, describeChanges, sameValue } from '../shared/changed-fields.ts'
import type { Container } from './container-schema.ts'
import { validateNarrowedPlacement, withPlacementOf } from './gated-pod-rules.ts'
import { type Pod, type PodSpec, podSpec, type Toleration } from './pod-schema.ts'

export function validatePodUpdate(next: Pod, old: Pod, errors: FieldErrors): void {
  if (sameSpec(next, old)) return
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
  const rejected = changedFields(podSpec, before, withoutChangeable(after, before))
  if (rejected.length > 0) errors.forbidden('spec', `${NOT_CHANGEABLE}\n${describeChanges(rejected)}`)
}

const NOT_CHANGEABLE = `pod updates may not change fields other than ${[
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',')}`

const isGated = ({ schedulingGates = [] }: PodSpec): boolean => schedulingGates.length > 0

/** The new spec with the old values of all mutable fields, so that any remaining difference is forbidden. */
function withoutChangeable(after: PodSpec, before: PodSpec): PodSpec {
  const { terminationGracePeriodSeconds: seconds = 0 } = before
  const isGraceFixed = seconds < 0 && after.terminationGracePeriodSeconds === 1
  return {
    ...after,
    containers: withImagesOf(before.containers, after.containers),
    initContainers: after.initContainers && withImagesOf(before.initContainers ?? [], after.initContainers),
    activeDeadlineSeconds: before.activeDeadlineSeconds,
    tolerations: before.tolerations,
    schedulingGates: before.schedulingGates,
    terminationGracePeriodSeconds: isGraceFixed ? seconds : after.terminationGracePeriodSeconds,
    ...(isGated(before) ? withPlacementOf(before, after) : {}),
  } as PodSpec
}

const withImagesOf = (before: readonly Container[], after: readonly Container[]): Container[] =>
  after.map((container, index) => ({ ...container, image: before[index]?.image }) as Container)

/** A deadline can be set and shortened. */
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
  const kept = new Set(after.map(withoutSeconds))
  if (before.every((toleration) => kept.has(withoutSeconds(toleration)))) return
  errors.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')
}

const withoutSeconds = ({ key = '', operator, value = '', effect }: Toleration): string =>
  JSON.stringify([key, operator, value, effect])

function validateRemovedGates(after: PodSpec, before: PodSpec, errors: FieldErrors): void {
  const known = new Set(before.schedulingGates?.map(({ name }) => name))
  for (const [index, { name }] of (after.schedulingGates ?? []).entries()) {
    if (known.has(name)) continue
    const field = `spec.schedulingGates[${index}].name`
    errors.forbidden(field, `only deletion is allowed, but found new scheduling gate '${name}'`)
  }
}

/** Whether the spec is unchanged and needs no validation. Tries the cheap comparison first, which mostly succeeds. */
export const sameSpec = (next: Pod, old: Pod): boolean =>
  isDeepStrictEqual(next.spec, old.spec) || sameValue(podSpec, old.spec, next.spec)
