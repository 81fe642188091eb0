// Validates env and envFrom of a container.
import type { FieldErrors } from '../../field-errors.ts'
import { configMapKeyProblems, dns1123SubdomainProblems, envVarNameProblems } from '../../names.ts'
import type { Infer } from '../../schema.ts'
import type { Container, envVar } from './container-schema.ts'
import { ENV_FIELDS, validateFieldReference, validateResourceReference } from './field-reference-rules.ts'

export function validateEnv(env: Container['env'], field: string, errors: FieldErrors): void {
  for (const [index, variable] of (env ?? []).entries()) {
    const path = `${field}[${index}]`
    if (variable.name === '') errors.required(`${path}.name`)
    else errors.invalidAll(`${path}.name`, variable.name, envVarNameProblems(variable.name))
    validateValueFrom(variable, `${path}.valueFrom`, errors)
  }
}

export function validateEnvFrom(envFrom: Container['envFrom'], field: string, errors: FieldErrors): void {
  for (const [index, { prefix, configMapRef, secretRef }] of (envFrom ?? []).entries()) {
    const path = `${field}[${index}]`
    if (prefix) errors.invalidAll(`${path}.prefix`, prefix, envVarNameProblems(prefix))
    if (configMapRef) validateName(configMapRef.name, `${path}.configMapRef`, errors)
    if (secretRef) validateName(secretRef.name, `${path}.secretRef`, errors)
    if (!configMapRef && !secretRef) errors.invalid(field, '', 'must specify one of: `configMapRef` or `secretRef`')
    if (configMapRef && secretRef) errors.invalid(field, '', 'may not have more than one field specified at a time')
  }
}

function validateValueFrom({ value, valueFrom }: Infer<typeof envVar>, field: string, errors: FieldErrors): void {
  if (!valueFrom) return
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom
  if (fieldRef) validateFieldReference(fieldRef, { field: `${field}.fieldRef`, supportedFields: ENV_FIELDS }, errors)
  if (resourceFieldRef) {
    const path = `${field}.resourceFieldRef`
    validateResourceReference(resourceFieldRef, { field: path, requiresContainer: false }, errors)
  }
  if (configMapKeyRef) validateKey(configMapKeyRef, `${field}.configMapKeyRef`, errors)
  if (secretKeyRef) validateKey(secretKeyRef, `${field}.secretKeyRef`, errors)
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length
  if (sources === 0) {
    errors.invalid(
      field,
      '',
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
    )
  } else if (value) errors.invalid(field, '', 'may not be specified when `value` is not empty')
  else if (sources > 1) errors.invalid(field, '', 'may not have more than one field specified at a time')
}

function validateName(name: string | undefined, field: string, errors: FieldErrors): void {
  if (!name) errors.required(`${field}.name`)
  else errors.invalidAll(`${field}.name`, name, dns1123SubdomainProblems(name))
}

function validateKey({ name = '', key }: { name?: string; key: string }, field: string, errors: FieldErrors): void {
  errors.invalidAll(`${field}.name`, name, dns1123SubdomainProblems(name))
  if (key === '') errors.required(`${field}.key`)
  else errors.invalidAll(`${field}.key`, key, configMapKeyProblems(key))
}
