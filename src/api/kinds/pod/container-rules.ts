// Validates a pod's containers and init containers. ephemeral-container-rules.ts validates the ephemeral ones.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123LabelProblems } from '../../names.ts'
import { compareQuantities } from '../../quantity.ts'
import type { Infer } from '../../schema.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import {
  isHugePages,
  isOvercommitAllowed,
  validateContainerResourceName,
  validateResourceAmount,
} from '../shared/resource-names.ts'
import type { Container, resourceRequirements, securityContext } from './container-schema.ts'
import { validateEnv, validateEnvFrom } from './env-rules.ts'
import { validateDevices, validateMounts } from './mount-rules.ts'
import type { PodSpec } from './pod-schema.ts'
import type { Volume } from './pod-volumes-schema.ts'
import { validateHostPorts, validatePorts } from './port-rules.ts'
import { validateLifecycle, validateProbes } from './probe-rules.ts'
import { validatePullPolicy } from './pull-policy.ts'

export interface ContainersInput {
  readonly spec: PodSpec
  readonly volumes: ReadonlyMap<string, Volume>
  readonly errors: FieldErrors
}

export function validateContainers({ spec, volumes, errors }: ContainersInput): void {
  const { containers, initContainers = [], terminationGracePeriodSeconds: gracePeriodSeconds } = spec
  const names = new Set<string>()
  if (containers.length === 0) errors.required('spec.containers')
  for (const [index, container] of containers.entries()) {
    const field = `spec.containers[${index}]`
    validateContainer({ container, field, volumes, names, errors })
    if (container.lifecycle) validateLifecycle(container.lifecycle, { field, gracePeriodSeconds }, errors)
    validateProbes(container, { field, gracePeriodSeconds }, errors)
    validateRestartPolicy(container, field, errors)
  }
  validateHostPorts(containers, 'spec.containers', errors)
  for (const [index, container] of initContainers.entries()) {
    const field = `spec.initContainers[${index}]`
    validateContainer({ container, field, volumes, names, errors })
    validateRestartPolicy(container, field, errors)
    validateHostPorts([container], 'spec.initContainers', errors) // init containers start one after another
    if (container.restartPolicy === 'Always') {
      if (container.lifecycle) validateLifecycle(container.lifecycle, { field, gracePeriodSeconds }, errors)
      validateProbes(container, { field, gracePeriodSeconds }, errors)
    } else forbidLifecycle(container, field, errors)
  }
}

const RESTART_POLICIES = ['Always', 'Never', 'OnFailure']

function validateRestartPolicy({ restartPolicy }: Container, field: string, errors: FieldErrors): void {
  if (restartPolicy !== undefined && !RESTART_POLICIES.includes(restartPolicy)) {
    errors.notSupported(`${field}.restartPolicy`, restartPolicy, RESTART_POLICIES)
  }
}

const LIFECYCLE_FIELDS = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const

/** Rejects probes and lifecycle hooks of an init container that runs to completion. */
function forbidLifecycle(container: Container, field: string, errors: FieldErrors): void {
  for (const name of LIFECYCLE_FIELDS) {
    if (container[name]) {
      errors.forbidden(`${field}.${name}`, 'may not be set for init containers without restartPolicy=Always')
    }
  }
}

interface ContainerInput {
  container: Container
  field: string
  volumes: ReadonlyMap<string, Volume>
  /** Names of the containers before this one. */
  names: Set<string>
  errors: FieldErrors
}

const MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError']

export function validateContainer({ container, field, volumes, names, errors }: ContainerInput): void {
  const { name, image = '', terminationMessagePolicy } = container
  if (name === '') errors.required(`${field}.name`)
  else errors.invalidAll(`${field}.name`, name, dns1123LabelProblems(name))
  if (name !== '' && names.has(name)) errors.duplicate(`${field}.name`, name)
  names.add(name)
  if (image === '') errors.required(`${field}.image`)
  if (image !== image.trim()) errors.invalid(`${field}.image`, image, 'must not have leading or trailing whitespace')
  if (terminationMessagePolicy === undefined) errors.required(`${field}.terminationMessagePolicy`)
  else if (!MESSAGE_POLICIES.includes(terminationMessagePolicy)) {
    errors.notSupported(`${field}.terminationMessagePolicy`, terminationMessagePolicy, MESSAGE_POLICIES)
  }
  validatePorts(container.ports, `${field}.ports`, errors)
  validateEnv(container.env, `${field}.env`, errors)
  validateEnvFrom(container.envFrom, `${field}.envFrom`, errors)
  validateMounts({ container, field, volumes, errors })
  validateDevices({ container, field, volumes, errors })
  validatePullPolicy(container.imagePullPolicy, `${field}.imagePullPolicy`, errors)
  validateResources(container.resources, `${field}.resources`, errors)
  validateSecurityContext(container.securityContext, `${field}.securityContext`, errors)
}

export function validateResources(
  resources: Infer<typeof resourceRequirements> | undefined,
  field: string,
  errors: FieldErrors,
): void {
  const { requests = {}, limits = {} } = resources ?? {}
  for (const [name, amount] of Object.entries(limits)) {
    validateContainerResourceName(name, `${field}.limits[${name}]`, errors)
    validateResourceAmount(name, amount, `${field}.limits[${name}]`, errors)
  }
  for (const [name, amount] of Object.entries(requests)) {
    validateContainerResourceName(name, `${field}.requests[${name}]`, errors)
    validateResourceAmount(name, amount, `${field}.requests[${name}]`, errors)
    const limit = amountOf(limits, name)
    if (limit === undefined) {
      if (!isOvercommitAllowed(name)) {
        errors.required(`${field}.limits`, 'Limit must be set for non overcommitable resources')
      }
    } else if (!isOvercommitAllowed(name) && compareQuantities(amount, limit) !== 0) {
      errors.invalid(`${field}.requests`, amount, `must be equal to ${name} limit of ${limit}`)
    } else if (compareQuantities(amount, limit) > 0) {
      errors.invalid(`${field}.requests`, amount, `must be less than or equal to ${name} limit of ${limit}`)
    }
  }
  const names = [...Object.keys(requests), ...Object.keys(limits)]
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory')) {
    errors.forbidden(field, 'HugePages require cpu or memory')
  }
}

function validateSecurityContext(
  context: Infer<typeof securityContext> | undefined,
  field: string,
  errors: FieldErrors,
): void {
  validateId(context?.runAsUser, `${field}.runAsUser`, errors)
  validateId(context?.runAsGroup, `${field}.runAsGroup`, errors)
  if (context?.allowPrivilegeEscalation === false && context.privileged) {
    errors.invalid(field, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true')
  }
}

const ID_MAX = 2_147_483_647

export function validateId(id: number | undefined, field: string, errors: FieldErrors): void {
  if (id !== undefined && (id < 0 || id > ID_MAX)) {
    errors.invalid(field, id, `must be between 0 and ${ID_MAX}, inclusive`)
  }
}
