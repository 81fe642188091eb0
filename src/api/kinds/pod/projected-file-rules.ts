// Validates the files of secret, configMap, downwardAPI and projected volumes.
import type { FieldErrors } from '../../field-errors.ts'
import { validateLabelSelector } from '../../meta.ts'
import type { Infer } from '../../schema.ts'
import { validateFilePath } from '../shared/path-rules.ts'
import { VOLUME_FIELDS, validateFieldReference, validateResourceReference } from './field-reference-rules.ts'
import type {
  clusterTrustBundleProjection,
  downwardAPIVolumeFile,
  keyToPath,
  projectedVolumeSource,
  serviceAccountTokenProjection,
  volumeProjection,
} from './pod-volumes-schema.ts'

export function validateFileMode(mode: number | undefined, field: string, errors: FieldErrors): void {
  if (mode !== undefined && (mode < 0 || mode > 0o777)) {
    errors.invalid(field, mode, 'must be a number between 0 and 0777 (octal), both inclusive')
  }
}

export function validateKeysToPaths(
  items: readonly Infer<typeof keyToPath>[] | undefined,
  field: string,
  errors: FieldErrors,
): void {
  for (const [index, { key, path, mode }] of (items ?? []).entries()) {
    const itemField = `${field}[${index}]`
    if (key === '') errors.required(`${itemField}.key`)
    if (path === '') errors.required(`${itemField}.path`)
    validateFilePath(path, `${itemField}.path`, errors)
    validateFileMode(mode, `${itemField}.mode`, errors)
  }
}

export function validateDownwardFiles(
  files: readonly Infer<typeof downwardAPIVolumeFile>[] | undefined,
  field: string,
  errors: FieldErrors,
): void {
  for (const { path, fieldRef, resourceFieldRef, mode } of files ?? []) {
    if (path === '') errors.required(`${field}.path`)
    validateFilePath(path, `${field}.path`, errors)
    if (fieldRef) {
      validateFieldReference(fieldRef, { field: `${field}.fieldRef`, supportedFields: VOLUME_FIELDS }, errors)
      if (resourceFieldRef) {
        errors.invalid(field, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')
      }
    } else if (resourceFieldRef) {
      const referenceField = `${field}.resourceFieldRef`
      validateResourceReference(resourceFieldRef, { field: referenceField, requiresContainer: true }, errors)
    } else errors.required(field, 'one of fieldRef and resourceFieldRef is required')
    validateFileMode(mode, `${field}.mode`, errors)
  }
}

export function validateProjected(
  projected: Infer<typeof projectedVolumeSource>,
  field: string,
  errors: FieldErrors,
): void {
  validateFileMode(projected.defaultMode, `${field}.defaultMode`, errors)
  const paths = new Set<string>()
  const addPath = (path: string, reportedValue: string) => {
    if (path !== '' && paths.has(path)) errors.invalid(field, reportedValue, 'conflicting duplicate paths')
    paths.add(path)
  }
  for (const [index, source] of projected.sources.entries()) {
    const sourceField = `${field}.sources[${index}]`
    const kinds = Object.keys(source)
    if (kinds.length > 1) errors.forbidden(sourceField, 'may not specify more than 1 volume type per source')
    validateProjection(source, sourceField, errors)
    for (const item of source.secret?.items ?? []) addPath(item.path, source.secret?.name ?? '')
    for (const item of source.configMap?.items ?? []) addPath(item.path, source.configMap?.name ?? '')
    for (const item of source.downwardAPI?.items ?? []) addPath(item.path, item.path)
    if (source.clusterTrustBundle) addPath(source.clusterTrustBundle.path, source.clusterTrustBundle.path)
  }
}

function validateProjection(source: Infer<typeof volumeProjection>, field: string, errors: FieldErrors): void {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source
  if (secret) {
    if (!secret.name) errors.required(`${field}.secret.name`)
    validateKeysToPaths(secret.items, `${field}.secret.items`, errors)
  }
  if (configMap) {
    if (!configMap.name) errors.required(`${field}.configMap.name`)
    validateKeysToPaths(configMap.items, `${field}.configMap.items`, errors)
  }
  if (downwardAPI) validateDownwardFiles(downwardAPI.items, `${field}.downwardAPI`, errors)
  if (serviceAccountToken) validateToken(serviceAccountToken, `${field}.serviceAccountToken`, errors)
  if (clusterTrustBundle) validateTrustBundle(clusterTrustBundle, `${field}.clusterTrustBundle`, errors)
  if (podCertificate && !podCertificate.signerName) errors.required(`${field}.podCertificate.signerName`)
}

const TOKEN_SECONDS_MIN = 600
const TOKEN_SECONDS_MAX = 2 ** 32

function validateToken(token: Infer<typeof serviceAccountTokenProjection>, field: string, errors: FieldErrors): void {
  const { path, expirationSeconds = 0 } = token
  if (expirationSeconds < TOKEN_SECONDS_MIN) {
    errors.invalid(`${field}.expirationSeconds`, expirationSeconds, 'may not specify a duration less than 10 minutes')
  }
  if (expirationSeconds > TOKEN_SECONDS_MAX) {
    errors.invalid(
      `${field}.expirationSeconds`,
      expirationSeconds,
      'may not specify a duration larger than 2^32 seconds',
    )
  }
  if (path === '') errors.required(`${field}.path`)
  else validateFilePath(path, `${field}.path`, errors)
}

function validateTrustBundle(
  bundle: Infer<typeof clusterTrustBundleProjection>,
  field: string,
  errors: FieldErrors,
): void {
  const { name, signerName, labelSelector, path } = bundle
  if (name !== undefined && signerName !== undefined) {
    errors.invalid(field, bundle, 'only one of name and signerName may be used')
  } else if (name === undefined && signerName === undefined) {
    errors.required(field, 'either name or signerName must be specified')
  } else if (name === '') errors.required(`${field}.name`, 'must be a valid object name')
  else if (signerName === '') errors.required(`${field}.signerName`, 'must be a valid signer name')
  if (name !== undefined && labelSelector) {
    errors.invalid(`${field}.labelSelector`, labelSelector, 'labelSelector must be unset if name is specified')
  }
  validateLabelSelector(labelSelector, `${field}.labelSelector`, errors)
  if (path === '') errors.required(`${field}.path`)
  validateFilePath(path, `${field}.path`, errors)
}
