// Validates the ephemeral containers of a pod and changes to them: containers can be added, but not changed or removed.
import type { FieldErrors } from '../../field-errors.ts'
import { isSameValue } from '../shared/changed-fields.ts'
import { validateContainer } from './container-rules.ts'
import { type Container, type EphemeralContainer, ephemeralContainer } from './container-schema.ts'
import type { Pod } from './pod-schema.ts'

const FIELD = 'spec.ephemeralContainers'

/** Fields that an ephemeral container cannot have. */
const FORBIDDEN_FIELDS = [
  'lifecycle',
  'livenessProbe',
  'ports',
  'readinessProbe',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'startupProbe',
] as const

export function validateEphemeralContainers({ spec }: Pod, old: Pod, errors: FieldErrors): void {
  const containers = spec?.ephemeralContainers ?? []
  const oldContainers = old.spec?.ephemeralContainers ?? []
  for (const oldContainer of oldContainers) {
    const { name } = oldContainer
    const next = containers.find((container) => container.name === name)
    const problem = next ? (isSameValue(ephemeralContainer, oldContainer, next) ? undefined : 'changed') : 'removed'
    if (problem) errors.forbidden(FIELD, `existing ephemeral containers "${name}" may not be ${problem}\n`)
  }
  const volumes = new Map((spec?.volumes ?? []).map((volume) => [volume.name, volume]))
  const otherContainers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]
  const otherNames = new Set(otherContainers.map(({ name }) => name))
  const names = new Set(otherNames)
  for (const [index, container] of containers.entries()) {
    const field = `${FIELD}[${index}]`
    validateContainer({ container: container as Container, field, volumes, names, errors })
    forbidFields(container, field, errors)
    const { targetContainerName } = container
    if (targetContainerName && !otherNames.has(targetContainerName)) {
      errors.notFound(`${field}.targetContainerName`, targetContainerName)
    }
  }
}

function forbidFields(container: EphemeralContainer, field: string, errors: FieldErrors): void {
  const { resources = {}, volumeMounts = [] } = container
  for (const name of FORBIDDEN_FIELDS) {
    const value = container[name]
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue
    errors.forbidden(`${field}.${name}`, 'cannot be set for an Ephemeral Container')
  }
  if (Object.values(resources).some((amounts) => amounts !== undefined && Object.keys(amounts).length > 0)) {
    errors.forbidden(`${field}.resources`, 'cannot be set for an Ephemeral Container')
  }
  for (const [index, { subPath, subPathExpr }] of volumeMounts.entries()) {
    const mountField = `${field}.volumeMounts[${index}]`
    if (subPath) errors.forbidden(`${mountField}.subPath`, 'cannot be set for an Ephemeral Container')
    if (subPathExpr) errors.forbidden(`${mountField}.subPathExpr`, 'cannot be set for an Ephemeral Container')
  }
}
