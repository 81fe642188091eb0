import { describe, expect, it } from 'vitest'
import { tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { volumeAttachmentKind as kind } from './volume-attachment.ts'

const anAttachment = (spec: object = {}) => ({
  metadata: { name: 'csi-1' },
  spec: { attacher: 'csi.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv-1' }, ...spec },
})
const inlineSource = (fields: object = {}) => ({
  source: {
    inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], csi: { driver: 'd', volumeHandle: 'h' }, ...fields },
  },
})
const storedAttachment = tryCreate(kind, anAttachment()).object
const ONE_SOURCE_MESSAGE = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
const INLINE_FIELD = 'spec.source.inlineVolumeSpec'

describe('VolumeAttachment', () => {
  it('SYS-18 is created unattached, regardless of the status in the request', () => {
    const { object, errors } = tryCreate(kind, { ...anAttachment(), status: { attached: true } })
    expect(errors).toEqual([])
    expect(object.status).toEqual({ attached: false })
  })

  it('accepts an inline volume', () => {
    expect(tryCreate(kind, anAttachment(inlineSource())).errors).toEqual([])
  })

  it.each<[string, object]>([
    ['spec.attacher: Required value', { attacher: '' }],
    [`spec.source: Required value: ${ONE_SOURCE_MESSAGE}`, { source: {} }],
    [
      `spec.source: Forbidden: ${ONE_SOURCE_MESSAGE}`,
      { source: { ...inlineSource().source, persistentVolumeName: 'pv-1' } },
    ],
    [
      `${INLINE_FIELD}.claimRef: Forbidden: may not be specified in the context of inline volumes`,
      inlineSource({ claimRef: { name: 'c' } }),
    ],
    [
      `${INLINE_FIELD}.capacity: Forbidden: may not be specified in the context of inline volumes`,
      inlineSource({ capacity: { storage: '1Gi' } }),
    ],
    [`${INLINE_FIELD}.accessModes: Required value`, inlineSource({ accessModes: [] })],
    [
      `${INLINE_FIELD}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes`,
      inlineSource({ persistentVolumeReclaimPolicy: 'Delete' }),
    ],
    [
      `${INLINE_FIELD}.nodeAffinity: Forbidden: may not be specified in the context of inline volumes`,
      inlineSource({ nodeAffinity: {} }),
    ],
    [
      `${INLINE_FIELD}.storageClassName: Forbidden: may not be specified in the context of inline volumes`,
      inlineSource({ storageClassName: 'fast' }),
    ],
    [
      `${INLINE_FIELD}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes`,
      inlineSource({ volumeMode: 'Block' }),
    ],
    [
      `${INLINE_FIELD}.csi: Required value: has to be specified in the context of inline volumes`,
      inlineSource({ csi: undefined, nfs: { server: 's', path: '/' } }),
    ],
  ])('rejects: %s', (message, spec) => {
    expect(tryCreate(kind, anAttachment(spec)).errors).toEqual([message])
  })

  it.each<[RegExp, object]>([
    [/^spec\.nodeName: Invalid value: "": a lowercase RFC 1123/, { nodeName: '' }],
    [/^spec\.source\.persistentVolumeName: Invalid value: "PV 1"/, { source: { persistentVolumeName: 'PV 1' } }],
    [
      /^spec\.source\.persistentVolumeName: Required value: must specify non empty persistentVolumeName$/,
      { source: { persistentVolumeName: '' } },
    ],
  ])('rejects: %s', (message, spec) => {
    expect(tryCreate(kind, anAttachment(spec)).errors[0]).toMatch(message)
  })

  it('has an immutable spec, and requires a resourceVersion for updates', () => {
    const { errors } = tryUpdate(kind, storedAttachment, (draft) => (draft.spec.nodeName = 'n2'))
    expect(errors).toEqual([expect.stringMatching(/^spec: Invalid value: \{.*"n2".*\}: field is immutable$/)])
    expect(kind.allowsUnconditionalUpdate).toBe(false)
  })

  it('SYS-18 accepts status updates', () => {
    expect(kind.status?.acceptsMetadata).toBe(false)
    const status = {
      attached: true,
      attachmentMetadata: { devicePath: '/dev/xvdb' },
      detachError: { message: 'busy', errorCode: 9, time: '2026-01-01T00:00:00Z' },
    }
    const { object, errors } = tryStatus(kind, storedAttachment, (draft) => (draft.status = status))
    expect(errors).toEqual([])
    expect(object.status).toEqual(status)
  })

  it.each<[string, object]>([
    [
      'status.attachmentMetadata: Too long: may not be more than 262144 bytes',
      { attachmentMetadata: { k: 'x'.repeat(262_144) } },
    ],
    [
      'status.attachError.message: Too long: may not be more than 1024 bytes',
      { attachError: { message: 'x'.repeat(1025) } },
    ],
    [
      'status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive',
      { detachError: { errorCode: -1 } },
    ],
  ])('rejects the status: %s', (message, status) => {
    expect(
      tryStatus(kind, storedAttachment, (draft) => (draft.status = { attached: false, ...status })).errors,
    ).toEqual([message])
  })

  it('has a table row with volume, node and state', () => {
    expect(kind.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'Name string',
      'Attacher string',
      'PV string',
      'Node string',
      'Attached boolean',
      'Age string',
    ])
    expect(kind.columns.map((column) => column.cell(storedAttachment, { nowMs: 0 }))).toEqual([
      'csi-1',
      'csi.example.com',
      'pv-1',
      'n1',
      false,
      '<unknown>',
    ])
  })
})
