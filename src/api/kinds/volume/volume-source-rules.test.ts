import { describe, expect, it } from 'vitest'
import { tryCreate } from '../try-write.fixture.ts'
import { persistentVolumeKind as kind } from './volume.ts'
import { persistentVolumeSource } from './volume-schema.ts'
import { volumeSources } from './volume-source-rules.ts'

const createWithSource = (source: object, name = 'pv-1') =>
  tryCreate(kind, {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, ...source },
  })

describe("a volume's source", () => {
  it('has a rule for every declared type', () => {
    const allSources = Object.fromEntries(Object.keys(persistentVolumeSource.fields).map((name) => [name, {}]))
    expect(volumeSources(allSources as never).sort()).toEqual(Object.keys(allSources).sort())
  })

  it.each<[string, object]>([
    ['hostPath', { path: '/data', type: 'DirectoryOrCreate' }],
    ['gcePersistentDisk', { pdName: 'd', partition: 1 }],
    ['awsElasticBlockStore', { volumeID: 'v' }],
    ['glusterfs', { endpoints: 'e', path: 'p', endpointsNamespace: 'ns' }],
    ['flocker', { datasetName: 'd' }],
    ['nfs', { server: 's', path: '/' }],
    ['rbd', { monitors: ['m'], image: 'i' }],
    ['quobyte', { registry: 'a:1,[::1]:2', volume: 'v' }],
    ['cephfs', { monitors: ['m'] }],
    [
      'iscsi',
      { targetPortal: 'h:3260', iqn: 'iqn.2026-01.com.example:disk', lun: 0, initiatorName: 'eui.0123456789abcdef' },
    ],
    ['cinder', { volumeID: 'v', secretRef: { name: 's', namespace: 'n' } }],
    ['fc', { targetWWNs: ['w'], lun: 255 }],
    ['flexVolume', { driver: 'd', options: { 'example.com/k': 'v' } }],
    ['azureFile', { secretName: 's', shareName: 's' }],
    ['vsphereVolume', { volumePath: 'p' }],
    ['photonPersistentDisk', { pdID: 'p' }],
    ['portworxVolume', { volumeID: 'v' }],
    ['azureDisk', { diskName: 'd', diskURI: 'https://x' }],
    ['scaleIO', { gateway: 'g', system: 's', volumeName: 'v' }],
    ['storageos', { volumeName: 'v' }],
    ['csi', { driver: 'CSI.example.com', volumeHandle: 'h', nodeStageSecretRef: { name: '!' } }],
  ])('is accepted if it is %s', (name, source) => {
    expect(createWithSource({ [name]: source }).errors).toEqual([])
  })

  it.each<[string, object]>([
    ['spec.hostPath.path: Required value', { hostPath: { path: '' } }],
    [`spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'`, { hostPath: { path: '/a/../b' } }],
    [
      'spec.hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
      { hostPath: { path: '/a', type: 'Pipe' } },
    ],
    [
      'spec.gcePersistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive',
      { gcePersistentDisk: { pdName: 'd', partition: 256 } },
    ],
    ['spec.awsElasticBlockStore.volumeID: Required value', { awsElasticBlockStore: {} }],
    [
      'spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid namespace name',
      { glusterfs: { endpoints: 'e', path: 'p', endpointsNamespace: '' } },
    ],
    ['spec.flocker: Required value: one of datasetName and datasetUUID is required', { flocker: {} }],
    [
      'spec.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
      { flocker: { datasetName: 'a', datasetUUID: 'b' } },
    ],
    [`spec.flocker.datasetName: Invalid value: "a/b": must not contain '/'`, { flocker: { datasetName: 'a/b' } }],
    ['spec.nfs.path: Invalid value: "data": must be an absolute path', { nfs: { server: 's', path: 'data' } }],
    ['spec.rbd.monitors: Required value', { rbd: { image: 'i' } }],
    [
      'spec.quobyte.registry: Invalid value: "a:1,b": must be a host:port pair or multiple pairs separated by commas',
      { quobyte: { registry: 'a:1,b', volume: 'v' } },
    ],
    [
      'spec.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters',
      { quobyte: { registry: 'a:1', volume: 'v', tenant: 'x'.repeat(65) } },
    ],
    ['spec.iscsi.iqn: Invalid value: "disk": must be valid format', { iscsi: { targetPortal: 'h', iqn: 'disk' } }],
    [
      'spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
      { iscsi: { targetPortal: 'h', iqn: 'eui.0123456789abcdef', lun: 256 } },
    ],
    [
      'spec.iscsi.secretRef: Required value',
      { iscsi: { targetPortal: 'h', iqn: 'eui.0123456789abcdef', chapAuthSession: true } },
    ],
    ['spec.cinder.secretRef.namespace: Required value', { cinder: { volumeID: 'v', secretRef: { name: 's' } } }],
    ['spec.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both', { fc: {} }],
    ['spec.fc.lun: Required value: lun is required if targetWWNs is specified', { fc: { targetWWNs: ['w'] } }],
    [
      'spec.fc.targetWWNs: Invalid value: ["w"]: targetWWNs and wwids can not be specified simultaneously',
      { fc: { targetWWNs: ['w'], lun: 1, wwids: ['x'] } },
    ],
    [
      'spec.flexVolume.options[x.kubernetes.io/y]: Invalid value: "x.kubernetes.io/y": kubernetes.io and k8s.io namespaces are reserved',
      { flexVolume: { driver: 'd', options: { 'x.kubernetes.io/y': '' } } },
    ],
    [
      'spec.azureFile.secretNamespace: Required value',
      { azureFile: { secretName: 's', shareName: 's', secretNamespace: '' } },
    ],
    [
      'spec.azureDisk.diskURI: Unsupported value: "d": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
      { azureDisk: { diskName: 'd', diskURI: 'd', kind: 'Managed' } },
    ],
    ['spec.scaleIO.volumeName: Required value', { scaleIO: { gateway: 'g', system: 's' } }],
    ['spec.storageos.volumeName: Required value', { storageos: {} }],
    ['spec.csi.driver: Required value', { csi: { driver: '', volumeHandle: 'h' } }],
    [
      'spec.csi.driver: Too long: may not be more than 63 bytes',
      { csi: { driver: 'a'.repeat(64), volumeHandle: 'h' } },
    ],
    ['spec.csi.volumeHandle: Required value', { csi: { driver: 'd' } }],
    [
      'spec.csi.nodeExpandSecretRef.namespace: Required value',
      { csi: { driver: 'd', volumeHandle: 'h', nodeExpandSecretRef: { name: 's' } } },
    ],
  ])('is rejected: %s', (message, source) => {
    expect(createWithSource(source).errors).toEqual([message])
  })

  it('limits the length of the volume name if it has an initiator name', () => {
    const iscsi = { targetPortal: 'host:3260', iqn: 'eui.0123456789abcdef', initiatorName: 'eui.0123456789abcdef' }
    expect(createWithSource({ iscsi }, 'p'.repeat(54)).errors).toEqual([])
    expect(createWithSource({ iscsi }, 'p'.repeat(55)).errors[0]).toMatch(
      /^spec\.iscsi\.targetportal: Invalid value: "host:3260": Total length/,
    )
  })

  it('has the defaults of its type', () => {
    const spec = createWithSource({ rbd: { monitors: ['m'], image: 'i' } }).object.spec
    expect(spec?.rbd).toMatchObject({ pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' })
    expect(createWithSource({ hostPath: { path: '/a' } }).object.spec?.hostPath).toEqual({ path: '/a', type: '' })
    expect(createWithSource({ azureDisk: { diskName: 'd', diskURI: 'https://x' } }).object.spec?.azureDisk).toEqual({
      diskName: 'd',
      diskURI: 'https://x',
      cachingMode: 'ReadWrite',
      fsType: 'ext4',
      readOnly: false,
      kind: 'Shared',
    })
  })
})
