// Validates the volumes of a pod, which must have unique names and exactly one source each. Most sources are only validated
// for required fields.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { validateAnnotations, validateLabels } from '../../meta.ts'
import { csiDriverNameProblems, dns1123LabelProblems, dns1123SubdomainProblems } from '../../names.ts'
import { quantitySign } from '../../quantity.ts'
import type { ObjectType } from '../../schema.ts'
import { validateClaimSpec } from '../claim/claim-spec-rules.ts'
import { HOST_PATH_TYPES, validateNoBacksteps } from '../shared/path-rules.ts'
import type { PodSpec } from './pod-schema.ts'
import { type Volume, volumeSource } from './pod-volumes-schema.ts'
import {
  validateDownwardFiles,
  validateFileMode,
  validateKeysToPaths,
  validateProjected,
} from './projected-file-rules.ts'

export type VolumeSourceName = keyof typeof volumeSource.fields & keyof Volume

const SOURCE_NAMES = Object.keys(volumeSource.fields) as VolumeSourceName[]

/** Returns the sources that are set. A valid volume has exactly one. */
export const sourcesOf = (volume: Volume): VolumeSourceName[] =>
  SOURCE_NAMES.filter((name) => volume[name] !== undefined)

export interface PodVolumesInput {
  readonly spec: PodSpec
  /**
   * The pod's name. If it is '', as in a template or before generateName is resolved, the names of ephemeral claims are not
   * validated.
   */
  readonly podName: string
  readonly errors: FieldErrors
  readonly context: RuleContext
}

/** Returns the valid volumes by name, for the validation of mounts. */
export function validateVolumes({ spec, podName, errors, context }: PodVolumesInput): Map<string, Volume> {
  const volumes = spec.volumes ?? []
  const ephemeralClaims = new Set(
    podName === '' ? [] : volumes.filter(({ ephemeral }) => ephemeral).map(({ name }) => `${podName}-${name}`),
  )
  const validVolumes = new Map<string, Volume>()
  const names = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const field = `spec.volumes[${index}]`
    const errorCount = errors.list.length
    validateSource(volume, { field, podName, errors, context })
    if (volume.name === '') errors.required(`${field}.name`)
    else errors.invalidAll(`${field}.name`, volume.name, dns1123LabelProblems(volume.name))
    if (names.has(volume.name)) errors.duplicate(`${field}.name`, volume.name)
    if (errors.list.length === errorCount) {
      names.add(volume.name)
      validVolumes.set(volume.name, volume)
    }
    const claimName = volume.persistentVolumeClaim?.claimName
    if (claimName !== undefined && ephemeralClaims.has(claimName)) {
      errors.invalid(
        `${field}.persistentVolumeClaim.claimName`,
        claimName,
        'must not reference a PVC that gets created for an ephemeral volume',
      )
    }
  }
  return validVolumes
}

interface SourceInput {
  field: string
  podName: string
  errors: FieldErrors
  context: RuleContext
}

function validateSource(volume: Volume, { field, podName, errors, context }: SourceInput): void {
  const [source, ...extraSources] = sourcesOf(volume)
  if (source === undefined) {
    errors.required(field, 'must specify a volume type')
    return
  }
  for (const extraSource of extraSources)
    errors.forbidden(`${field}.${extraSource}`, 'may not specify more than 1 volume type')
  validateRequiredFields(volume, source, `${field}.${source}`, errors)
  validateFileSources(volume, field, errors)
  if (source === 'ephemeral') validateEphemeral(volume, { field, podName, errors, context })
  if (volume.emptyDir?.sizeLimit !== undefined && quantitySign(volume.emptyDir.sizeLimit) < 0) {
    errors.forbidden(`${field}.emptyDir.sizeLimit`, 'SizeLimit field must be a valid resource quantity')
  }
  if (source === 'hostPath') validateHostPath(volume, field, errors)
  if (source === 'nfs' && volume.nfs?.path && !volume.nfs.path.startsWith('/')) {
    errors.invalid(`${field}.nfs.path`, volume.nfs.path, 'must be an absolute path')
  }
  if (source === 'csi') validateInlineCsi(volume, field, errors)
}

function validateRequiredFields(volume: Volume, source: VolumeSourceName, field: string, errors: FieldErrors): void {
  const sourceType = volumeSource.fields[source].type as ObjectType
  const value = volume[source] as Record<string, unknown>
  for (const [name, { required, type }] of Object.entries(sourceType.fields)) {
    if (!required || (source === 'projected' && name === 'sources')) continue // a projected volume without sources is an empty directory
    const fieldValue = value[name]
    const isMissing =
      (type.is === 'string' && fieldValue === '') || (Array.isArray(fieldValue) && fieldValue.length === 0)
    if (isMissing) errors.required(`${field}.${name}`)
  }
}

function validateFileSources(
  { secret, configMap, downwardAPI, projected }: Volume,
  field: string,
  errors: FieldErrors,
) {
  if (secret) {
    if (!secret.secretName) errors.required(`${field}.secret.secretName`)
    validateFileMode(secret.defaultMode, `${field}.secret.defaultMode`, errors)
    validateKeysToPaths(secret.items, `${field}.secret.items`, errors)
  }
  if (configMap) {
    if (!configMap.name) errors.required(`${field}.configMap.name`)
    validateFileMode(configMap.defaultMode, `${field}.configMap.defaultMode`, errors)
    validateKeysToPaths(configMap.items, `${field}.configMap.items`, errors)
  }
  if (downwardAPI) {
    validateFileMode(downwardAPI.defaultMode, `${field}.downwardAPI.defaultMode`, errors)
    validateDownwardFiles(downwardAPI.items, `${field}.downwardAPI`, errors)
  }
  if (projected) validateProjected(projected, `${field}.projected`, errors)
}

const TEMPLATE_METADATA = ['labels', 'annotations']

/** Validates that the template is a valid claim and that `<pod>-<volume>` is a valid claim name. */
function validateEphemeral(volume: Volume, { field, podName, errors, context }: SourceInput): void {
  const template = volume.ephemeral?.volumeClaimTemplate
  const templateField = `${field}.ephemeral.volumeClaimTemplate`
  if (!template) {
    errors.required(templateField)
  } else {
    const metadata = template.metadata ?? {}
    validateAnnotations(metadata.annotations, `${templateField}.metadata.annotations`, errors)
    validateLabels(metadata.labels, `${templateField}.metadata.labels`, errors)
    for (const name of Object.keys(metadata)) {
      if (!TEMPLATE_METADATA.includes(name)) errors.forbidden(`${templateField}.metadata.${name}`, 'cannot be set')
    }
    validateClaimSpec(
      template.spec,
      { field: `${templateField}.spec`, allowsAttributesClass: context.gates.enabled('VolumeAttributesClass') },
      errors,
    )
  }
  if (podName === '' || volume.name === '') return
  const claimName = `${podName}-${volume.name}`
  for (const problem of dns1123SubdomainProblems(claimName)) {
    errors.invalid(`${field}.name`, volume.name, `PVC name ${JSON.stringify(claimName)}: ${problem}`)
  }
}

function validateHostPath({ hostPath }: Volume, field: string, errors: FieldErrors): void {
  if (!hostPath?.path) return // validateRequiredFields reports it
  validateNoBacksteps(hostPath.path, `${field}.hostPath.path`, errors)
  if (hostPath.type !== undefined && !HOST_PATH_TYPES.includes(hostPath.type)) {
    errors.notSupported(`${field}.hostPath.type`, hostPath.type, HOST_PATH_TYPES)
  }
}

function validateInlineCsi({ csi }: Volume, field: string, errors: FieldErrors): void {
  if (!csi) return
  if (csi.driver !== '') errors.invalidAll(`${field}.csi.driver`, csi.driver, csiDriverNameProblems(csi.driver))
  const secretName = csi.nodePublishSecretRef?.name ?? ''
  if (!csi.nodePublishSecretRef) return
  if (secretName === '') errors.required(`${field}.csi.nodePublishSecretRef.name`)
  else errors.invalidAll(`${field}.csi.name`, secretName, dns1123SubdomainProblems(secretName))
}
