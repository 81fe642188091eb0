// Declares VolumeAttachment: the intent to attach a volume to a node, and its state.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateCsiDriverName } from '../csi-driver/csi-driver-name.ts'
import { validateImmutableField } from '../shared/changed-fields.ts'
import { validateInlineVolumeSpec } from '../volume/volume-spec-rules.ts'
import {
  type VolumeAttachment,
  type VolumeAttachmentStatus,
  volumeAttachment,
  volumeAttachmentSpec,
} from './volume-attachment-schema.ts'

export const volumeAttachmentKind = defineKind<VolumeAttachment>({
  group: 'storage.k8s.io',
  versions: ['v1'],
  kind: 'VolumeAttachment',
  plural: 'volumeattachments',
  singular: 'volumeattachment',
  namespaced: false,
  type: volumeAttachment,

  nameErrors: dns1123SubdomainProblems,
  prepareForCreate(attachment) {
    attachment.status = { attached: false }
  },
  validate({ spec }, errors) {
    validateCsiDriverName(spec.attacher, 'spec.attacher', errors)
    validateSource(spec.source, errors)
    errors.invalidAll('spec.nodeName', spec.nodeName, dns1123SubdomainProblems(spec.nodeName))
  },
  validateUpdate(next, old, errors) {
    validateImmutableField(
      { field: 'spec', type: volumeAttachmentSpec, oldValue: old.spec, newValue: next.spec },
      errors,
    )
  },
  status: {
    acceptsMetadata: false,
    prepare(next) {
      next.status ??= { attached: false }
    },
    validate: ({ status }, _old, errors) => validateStatus(status, errors),
  },

  columns: [
    nameColumn,
    {
      name: 'Attacher',
      type: 'string',
      doc: 'CSI driver that attaches the volume.',
      cell: ({ spec }) => spec.attacher,
    },
    {
      name: 'PV',
      type: 'string',
      doc: 'Volume to attach.',
      cell: ({ spec }) => spec.source.persistentVolumeName,
    },
    { name: 'Node', type: 'string', doc: 'Node to attach the volume to.', cell: ({ spec }) => spec.nodeName },
    {
      name: 'Attached',
      type: 'boolean',
      doc: 'Whether the volume is attached.',
      cell: ({ status }) => status?.attached ?? false,
    },
    ageColumn,
  ],
  allowsUnconditionalUpdate: false,
  deleteReturnsObject: true,
})

const ONE_SOURCE_MESSAGE = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'

function validateSource(
  { inlineVolumeSpec, persistentVolumeName }: VolumeAttachment['spec']['source'],
  errors: FieldErrors,
): void {
  const field = 'spec.source'
  if (inlineVolumeSpec && persistentVolumeName !== undefined) errors.forbidden(field, ONE_SOURCE_MESSAGE)
  else if (inlineVolumeSpec) validateInlineVolumeSpec(inlineVolumeSpec, `${field}.inlineVolumeSpec`, errors)
  else if (persistentVolumeName === undefined) errors.required(field, ONE_SOURCE_MESSAGE)
  else if (persistentVolumeName === '') {
    errors.required(`${field}.persistentVolumeName`, 'must specify non empty persistentVolumeName')
  }
  if (persistentVolumeName !== undefined) {
    errors.invalidAll(
      `${field}.persistentVolumeName`,
      persistentVolumeName,
      dns1123SubdomainProblems(persistentVolumeName),
    )
  }
}

const METADATA_BYTES_MAX = 256 * 1024 // sum over all keys and values
const MESSAGE_BYTES_MAX = 1024

function validateStatus(status: VolumeAttachmentStatus | undefined, errors: FieldErrors): void {
  let bytes = 0
  for (const [key, value] of Object.entries(status?.attachmentMetadata ?? {})) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > METADATA_BYTES_MAX) errors.tooLong('status.attachmentMetadata', METADATA_BYTES_MAX)
  for (const name of ['attachError', 'detachError'] as const) {
    const { message = '', errorCode = 0 } = status?.[name] ?? {}
    if (Buffer.byteLength(message) > MESSAGE_BYTES_MAX) errors.tooLong(`status.${name}.message`, MESSAGE_BYTES_MAX)
    if (errorCode < 0) {
      errors.invalid(`status.${name}.errorCode`, errorCode, 'must be between 0 and 2147483647, inclusive')
    }
  }
}
