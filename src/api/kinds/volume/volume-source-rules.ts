// Validates the source of a volume, which must have exactly one. Sources of removed plugins are accepted, because clusters
// have volumes that use them.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from '../../names.ts'
import { validateCsiDriverName } from '../csi-driver/csi-driver-name.ts'
import { HOST_PATH_TYPES, validateNoBacksteps } from '../shared/path-rules.ts'
import type { SecretReference } from '../shared/references-schema.ts'
import type { PersistentVolumeSpec, persistentVolumeSource } from './volume-schema.ts'

export type VolumeSourceName = keyof typeof persistentVolumeSource.fields

export interface VolumeSourceOptions {
  /** Path of the object that contains the source, such as `spec`. */
  readonly field: string
  readonly volumeName: string
}

export function validateVolumeSource(
  spec: PersistentVolumeSpec,
  { field, volumeName }: VolumeSourceOptions,
  errors: FieldErrors,
): void {
  const [sourceName, ...extraNames] = volumeSources(spec)
  if (sourceName === undefined) {
    errors.required(field, 'must specify a volume type')
    return
  }
  const rule = RULES[sourceName] as (source: unknown, field: string, errors: FieldErrors, volumeName: string) => void
  rule(spec[sourceName], `${field}.${sourceName}`, errors, volumeName)
  for (const extraName of extraNames)
    errors.forbidden(`${field}.${extraName}`, 'may not specify more than 1 volume type')
}

/** Returns the sources that are set, in the order of RULES. */
export const volumeSources = (spec: PersistentVolumeSpec): VolumeSourceName[] =>
  (Object.keys(RULES) as VolumeSourceName[]).filter((name) => spec[name] !== undefined)

type Rules = {
  readonly [Name in VolumeSourceName]: (
    source: NonNullable<PersistentVolumeSpec[Name]>,
    field: string,
    errors: FieldErrors,
    volumeName: string,
  ) => void
}

const RULES: Rules = {
  hostPath({ path, type }, field, errors) {
    validateRequired({ path }, field, errors)
    validateNoBacksteps(path, `${field}.path`, errors)
    if (path !== '' && type !== undefined && !HOST_PATH_TYPES.includes(type)) {
      errors.notSupported(`${field}.type`, type, HOST_PATH_TYPES)
    }
  },
  gcePersistentDisk({ pdName, partition }, field, errors) {
    validateRequired({ pdName }, field, errors)
    validatePartition(partition, field, errors)
  },
  awsElasticBlockStore({ volumeID, partition }, field, errors) {
    validateRequired({ volumeID }, field, errors)
    validatePartition(partition, field, errors)
  },
  glusterfs({ endpoints, path, endpointsNamespace }, field, errors) {
    validateRequired({ endpoints, path }, field, errors)
    if (endpointsNamespace === undefined) return
    const problems =
      endpointsNamespace === ''
        ? ['if the endpointnamespace is set, it must be a valid namespace name']
        : dns1123LabelProblems(endpointsNamespace)
    errors.invalidAll(`${field}.endpointsNamespace`, endpointsNamespace, problems)
  },
  flocker({ datasetName = '', datasetUUID = '' }, field, errors) {
    if (datasetName === '' && datasetUUID === '') {
      errors.required(field, 'one of datasetName and datasetUUID is required')
    }
    if (datasetName !== '' && datasetUUID !== '') {
      errors.invalid(field, 'resource', 'datasetName and datasetUUID can not be specified simultaneously')
    }
    if (datasetName.includes('/')) errors.invalid(`${field}.datasetName`, datasetName, "must not contain '/'")
  },
  nfs({ server, path }, field, errors) {
    validateRequired({ server, path }, field, errors)
    if (!path.startsWith('/')) errors.invalid(`${field}.path`, path, 'must be an absolute path')
  },
  rbd({ monitors, image }, field, errors) {
    validateRequired({ monitors, image }, field, errors)
  },
  quobyte({ registry, volume, tenant = '' }, field, errors) {
    const detail = 'must be a host:port pair or multiple pairs separated by commas'
    if (registry === '') errors.required(`${field}.registry`, detail)
    else if (Buffer.byteLength(tenant) >= 65) {
      errors.required(`${field}.tenant`, 'must be a UUID and may not exceed a length of 64 characters')
    } else if (!registry.split(',').every((pair) => HOST_AND_PORT.test(pair))) {
      errors.invalid(`${field}.registry`, registry, detail)
    }
    validateRequired({ volume }, field, errors)
  },
  cephfs({ monitors }, field, errors) {
    validateRequired({ monitors }, field, errors)
  },
  iscsi(source, field, errors, volumeName) {
    const { targetPortal, iqn, lun, initiatorName, secretRef } = source
    validateRequired({ targetPortal }, field, errors)
    if (initiatorName !== undefined && Buffer.byteLength(`${volumeName}:${targetPortal}`) > 64) {
      errors.invalid(
        `${field}.targetportal`,
        targetPortal,
        'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.',
      )
    }
    validateRequired({ iqn }, field, errors)
    if (iqn !== '' && !isIscsiName(iqn)) errors.invalid(`${field}.iqn`, iqn, 'must be valid format')
    validateLun(lun, field, errors)
    if ((source.chapAuthDiscovery || source.chapAuthSession) && !secretRef) errors.required(`${field}.secretRef`)
    if (secretRef && !secretRef.name) errors.required(`${field}.secretRef.name`)
    if (initiatorName !== undefined && !isIscsiName(initiatorName)) {
      errors.invalid(`${field}.initiatorname`, initiatorName, 'must be valid format')
    }
  },
  cinder({ volumeID, secretRef }, field, errors) {
    validateRequired({ volumeID }, field, errors)
    if (secretRef)
      validateRequired({ name: secretRef.name, namespace: secretRef.namespace }, `${field}.secretRef`, errors)
  },
  fc({ targetWWNs = [], wwids = [], lun }, field, errors) {
    if (targetWWNs.length === 0 && wwids.length === 0) {
      errors.required(`${field}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both')
    }
    if (targetWWNs.length === 0) return
    if (wwids.length > 0) {
      errors.invalid(`${field}.targetWWNs`, targetWWNs, 'targetWWNs and wwids can not be specified simultaneously')
    }
    if (lun === undefined) errors.required(`${field}.lun`, 'lun is required if targetWWNs is specified')
    else validateLun(lun, field, errors)
  },
  flexVolume({ driver, options }, field, errors) {
    validateRequired({ driver }, field, errors)
    for (const option of Object.keys(options ?? {})) {
      const domain = `.${option.split('/')[0]!.toLowerCase()}`
      if (domain.endsWith('.kubernetes.io') || domain.endsWith('.k8s.io')) {
        errors.invalid(`${field}.options[${option}]`, option, 'kubernetes.io and k8s.io namespaces are reserved')
      }
    }
  },
  azureFile({ secretName, shareName, secretNamespace }, field, errors) {
    validateRequired({ secretName, shareName }, field, errors)
    if (secretNamespace === '') errors.required(`${field}.secretNamespace`)
  },
  vsphereVolume({ volumePath }, field, errors) {
    validateRequired({ volumePath }, field, errors)
  },
  photonPersistentDisk({ pdID }, field, errors) {
    validateRequired({ pdID }, field, errors)
  },
  portworxVolume({ volumeID }, field, errors) {
    validateRequired({ volumeID }, field, errors)
  },
  azureDisk({ diskName, diskURI, cachingMode, kind }, field, errors) {
    validateRequired({ diskName, diskURI }, field, errors)
    if (cachingMode !== undefined && !AZURE_CACHING_MODES.includes(cachingMode)) {
      errors.notSupported(`${field}.cachingMode`, cachingMode, AZURE_CACHING_MODES)
    }
    if (kind === undefined) return
    if (!AZURE_DISK_KINDS.includes(kind)) errors.notSupported(`${field}.kind`, kind, AZURE_DISK_KINDS)
    const uri = kind === 'Managed' ? AZURE_MANAGED_URI : AZURE_BLOB_URI
    if (!diskURI.startsWith(uri.prefix)) errors.notSupported(`${field}.diskURI`, diskURI, [uri.form])
  },
  scaleIO({ gateway, system, volumeName = '' }, field, errors) {
    validateRequired({ gateway, system, volumeName }, field, errors)
  },
  local({ path }, field, errors) {
    validateRequired({ path }, field, errors)
    validateNoBacksteps(path, `${field}.path`, errors)
  },
  storageos({ volumeName = '', volumeNamespace, secretRef }, field, errors) {
    if (volumeName === '') errors.required(`${field}.volumeName`)
    else errors.invalidAll(`${field}.volumeName`, volumeName, dns1123LabelProblems(volumeName))
    if (volumeNamespace) {
      errors.invalidAll(`${field}.volumeNamespace`, volumeNamespace, dns1123LabelProblems(volumeNamespace))
    }
    if (secretRef)
      validateRequired({ name: secretRef.name, namespace: secretRef.namespace }, `${field}.secretRef`, errors)
  },
  csi(source, field, errors) {
    validateCsiDriverName(source.driver, `${field}.driver`, errors)
    validateRequired({ volumeHandle: source.volumeHandle }, field, errors)
    // As in Kubernetes, nodeStageSecretRef is not validated, because clusters may have volumes with an invalid one.
    for (const name of VALIDATED_SECRETS) validateSecret(source[name], `${field}.${name}`, errors)
  },
}

const AZURE_CACHING_MODES: readonly string[] = ['None', 'ReadOnly', 'ReadWrite']
const AZURE_DISK_KINDS: readonly string[] = ['Dedicated', 'Managed', 'Shared']
const AZURE_MANAGED_URI = {
  prefix: '/subscriptions/',
  form: '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}',
}
const AZURE_BLOB_URI = {
  prefix: 'https://',
  form: 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd',
}
const VALIDATED_SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const

const HOST_AND_PORT = /^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/
const ISCSI_NAMES = [
  /^iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+$/,
  /^eui.[A-Za-z0-9]{16}$/,
  /^naa.[A-Za-z0-9]{32}$/,
]

const isIscsiName = (name: string): boolean => ISCSI_NAMES.some((form) => form.test(name))

/** Requires every value to be non-empty. The keys are the names of the fields. */
function validateRequired(
  values: Readonly<Record<string, string | readonly string[] | undefined>>,
  field: string,
  errors: FieldErrors,
): void {
  for (const [name, value] of Object.entries(values))
    if (!value || value.length === 0) errors.required(`${field}.${name}`)
}

function validateSecret(secret: SecretReference | undefined, field: string, errors: FieldErrors): void {
  if (!secret) return
  const { name = '', namespace = '' } = secret
  validateRequired({ name, namespace }, field, errors)
  if (name !== '') errors.invalidAll(`${field}.name`, name, dns1123SubdomainProblems(name))
  if (namespace !== '') errors.invalidAll(`${field}.namespace`, namespace, dns1123LabelProblems(namespace))
}

function validatePartition(partition = 0, field: string, errors: FieldErrors): void {
  if (partition < 0 || partition > 255) {
    errors.invalid(`${field}.partition`, partition, 'must be between 1 and 255, inclusive')
  }
}

function validateLun(lun: number, field: string, errors: FieldErrors): void {
  if (lun < 0 || lun > 255) errors.invalid(`${field}.lun`, lun, 'must be between 0 and 255, inclusive')
}
