// Validates the spec and the status of a stateful set and their changes, with the Kubernetes messages.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { validateLabelSelector } from '../../meta.ts'
import { dns1123LabelProblems } from '../../names.ts'
import { type LabelSelector, labelSelectorFromObject, matchesLabels, SelectorError } from '../../selectors.ts'
import { validateClaimSpec } from '../claim/claim-spec-rules.ts'
import { validatePodTemplate } from '../pod/pod-template-rules.ts'
import type { PodTemplateSpec } from '../pod/pod-template-schema.ts'
import { isSameValue, validateImmutableField } from '../shared/changed-fields.ts'
import {
  type StatefulSet,
  type StatefulSetSpec,
  type StatefulSetStatus,
  statefulSetSpec,
} from './stateful-set-schema.ts'

const NO_SPEC: StatefulSetSpec = { template: { spec: { containers: [] } } }

/** Validates a set. volumeClaimTemplates and serviceName, which are immutable, are validated on create only. */
export function validateStatefulSet(
  { spec = NO_SPEC }: StatefulSet,
  errors: FieldErrors,
  context: RuleContext,
  old?: StatefulSet,
): void {
  validatePolicies(spec, errors)
  if (!old) validateClaimTemplates(spec, errors, context)
  validateNotNegative(spec.replicas, 'spec.replicas', errors)
  validateNotNegative(spec.minReadySeconds, 'spec.minReadySeconds', errors)
  validateNotNegative(spec.ordinals?.start, 'spec.ordinals.start', errors)
  if (!old && spec.serviceName)
    errors.invalidAll('spec.serviceName', spec.serviceName, dns1123LabelProblems(spec.serviceName))
  validateSelector(spec, errors)
  // The stored template has been validated, perhaps by the rules of an earlier release.
  const hasSameTemplate = old && isSameValue(statefulSetSpec.fields.template.type, old.spec?.template, spec.template)
  if (!hasSameTemplate) validatePodTemplate(templateWithClaims(spec), 'spec.template', errors, context)
  const { restartPolicy = '', activeDeadlineSeconds } = spec.template.spec
  if (restartPolicy !== 'Always') errors.notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always'])
  if (activeDeadlineSeconds !== undefined) {
    errors.forbidden(
      'spec.template.spec.activeDeadlineSeconds',
      'activeDeadlineSeconds in StatefulSet is not Supported',
    )
  }
}

const NOT_NEGATIVE = 'must be greater than or equal to 0'

function validateNotNegative(value: number | undefined, field: string, errors: FieldErrors): void {
  if (value !== undefined && value < 0) errors.invalid(field, value, NOT_NEGATIVE)
}

const MANAGEMENT_POLICIES: readonly (string | undefined)[] = ['OrderedReady', 'Parallel']
const RETENTION_POLICIES = ['Retain', 'Delete']

function validatePolicies(spec: StatefulSetSpec, errors: FieldErrors): void {
  const policy = spec.podManagementPolicy
  if (!MANAGEMENT_POLICIES.includes(policy))
    errors.invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'")
  validateUpdateStrategy(spec.updateStrategy ?? {}, errors)
  for (const name of ['whenDeleted', 'whenScaled'] as const) {
    const value = spec.persistentVolumeClaimRetentionPolicy?.[name] ?? 'Retain'
    if (!RETENTION_POLICIES.includes(value))
      errors.notSupported(`spec.persistentVolumeClaimRetentionPolicy.${name}`, value, RETENTION_POLICIES)
  }
}

function validateUpdateStrategy(strategy: NonNullable<StatefulSetSpec['updateStrategy']>, errors: FieldErrors): void {
  const field = 'spec.updateStrategy'
  const { type, rollingUpdate } = strategy
  if (type === 'OnDelete') {
    if (rollingUpdate)
      errors.invalid(`${field}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")
  } else if (type !== 'RollingUpdate') {
    errors.invalid(field, strategy, "must be 'RollingUpdate' or 'OnDelete'")
  } else if (rollingUpdate) {
    validateNotNegative(rollingUpdate.partition, `${field}.rollingUpdate.partition`, errors)
    validateMaxUnavailable(rollingUpdate.maxUnavailable, `${field}.rollingUpdate.maxUnavailable`, errors)
  }
}

function validateMaxUnavailable(value: number | string | undefined, field: string, errors: FieldErrors): void {
  if (value === undefined) return
  if (typeof value === 'number') {
    validateNotNegative(value, field, errors)
    if (value === 0) errors.invalid(field, value, 'cannot be 0')
    return
  }
  if (!/^[0-9]+%$/.test(value)) {
    errors.invalid(
      field,
      value,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    )
    return
  }
  const percent = Number(value.slice(0, -1))
  if (percent === 0) errors.invalid(field, value, 'cannot be 0')
  if (percent > 100) errors.invalid(field, value, 'must not be greater than 100%')
}

function validateClaimTemplates(
  { volumeClaimTemplates = [] }: StatefulSetSpec,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  for (const [index, { spec = {} }] of volumeClaimTemplates.entries()) {
    const field = `spec.volumeClaimTemplates[${index}].spec`
    validateClaimSpec(spec, { field, allowsAttributesClass: gates.enabled('VolumeAttributesClass') }, errors)
  }
}

function validateSelector({ selector, template }: StatefulSetSpec, errors: FieldErrors): void {
  const field = 'spec.selector'
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  if (!selector) errors.required(field)
  else {
    validateLabelSelector(selector, field, errors)
    if (Object.keys(matchLabels).length + matchExpressions.length === 0)
      errors.invalid(field, selector, 'empty selector is invalid for statefulset')
  }
  let labelSelector: LabelSelector
  try {
    labelSelector = labelSelectorFromObject(selector)
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    errors.invalid(field, selector, '')
    return
  }
  const { labels } = template.metadata ?? {}
  if (!matchesLabels(labelSelector, labels))
    errors.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
}

/** Returns the template with the volumes of the claim templates, and without the names that the controller sets. */
function templateWithClaims({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec {
  const claimVolumes = volumeClaimTemplates.map(({ metadata: { name = '' } }) => ({
    name,
    persistentVolumeClaim: { claimName: name },
  }))
  const claimNames = new Set(claimVolumes.map(({ name }) => name))
  const otherVolumes = (template.spec.volumes ?? []).filter(({ name }) => !claimNames.has(name))
  const { hostname: _, subdomain: __, ...spec } = template.spec
  return { ...template, spec: { ...spec, volumes: [...claimVolumes, ...otherVolumes] } }
}

const IMMUTABLE_FIELDS = ['selector', 'volumeClaimTemplates', 'serviceName', 'podManagementPolicy'] as const

export function validateStatefulSetUpdate(next: StatefulSet, old: StatefulSet, errors: FieldErrors): void {
  for (const name of IMMUTABLE_FIELDS) {
    validateImmutableField(
      {
        field: `spec.${name}`,
        type: statefulSetSpec.fields[name].type,
        oldValue: old.spec?.[name],
        newValue: next.spec?.[name],
      },
      errors,
    )
  }
}

const COUNTERS = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  'collisionCount',
] as const
const PARTS_OF_REPLICAS = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'] as const

export function validateStatefulSetStatus(next: StatefulSet, old: StatefulSet, errors: FieldErrors): void {
  const status: StatefulSetStatus = next.status ?? { replicas: 0 }
  for (const name of COUNTERS) validateNotNegative(status[name], `status.${name}`, errors)
  for (const name of PARTS_OF_REPLICAS) {
    const count = status[name] ?? 0
    if (count > status.replicas) errors.invalid(`status.${name}`, count, 'cannot be greater than status.replicas')
  }
  const { availableReplicas = 0, readyReplicas = 0, collisionCount = 0 } = status
  if (availableReplicas > readyReplicas)
    errors.invalid('status.availableReplicas', availableReplicas, 'cannot be greater than status.readyReplicas')
  if (collisionCount < (old.status?.collisionCount ?? 0))
    errors.invalid('status.collisionCount', collisionCount, 'cannot be decremented')
}
