// Steps for `kubectl describe`: the output contains fields of the object and of related objects.
import { expect } from 'vitest'
import type { Step } from './step.ts'

/** Text that `kubectl describe` must print for each object. White space in the output is collapsed to one space. */
const DESCRIPTIONS: Record<string, readonly string[]> = {
  'ns shop': ['Name: shop', 'Status: Active', 'Name: ceiling'],
  'node node-a': ['Name: node-a', 'Roles: storage', 'InternalIP: 10.0.0.1', 'Kubelet Version: v1.34.0'],
  'pod web': ['Name: web', 'Namespace: shop', 'Image: registry.example.com/web:1', 'ClaimName: orders'],
  'pv disk-a': [
    'Name: disk-a',
    'Finalizers: [kubernetes.io/pv-protection]',
    'Capacity: 5Gi',
    'Driver: nobody.example.com',
  ],
  'pvc orders': ['Name: orders', 'StorageClass: fast', 'Status: Pending', 'Warning NoRoom', 'nothing is left'],
  'quota ceiling': ['Name: ceiling', 'Namespace: shop', 'Resource Used Hard'],
  'limits bounds': ['Name: bounds', 'PersistentVolumeClaim storage 1Mi 2Ti'],
  'secret login': ['Name: login', 'Type: Opaque', 'password: 7 bytes'],
  'cm settings': ['Name: settings', 'colour:', 'green'],
  'sa robot': ['Name: robot', 'Mountable secrets: <none>'],
  'lease leader': ['Name: leader', 'Holder Identity: node-a'],
  'sc fast': ['Name: fast', 'IsDefaultClass: Yes', 'Provisioner: nobody.example.com', 'AllowVolumeExpansion: True'],
  'vac silver': ['Name: silver', 'nobody.example.com', '3000'],
  'csidriver nobody.example.com': ['Name: nobody.example.com', 'Storage Capacity: true'],
  'csinode node-a': ['Name: node-a', 'nobody.example.com', 'topology.kubernetes.io/zone'],
  'volumeattachment attach-a': ['Name: attach-a', 'Attacher: nobody.example.com', 'Node Name: node-a'],
  'csistoragecapacity zone-1-fast': ['Name: zone-1-fast', 'Storage Class Name: fast'],
  'event orders.1': ['Name: orders.1', 'Reason: NoRoom', 'Message: nothing is left'],
}

const collapse = (text: string) => text.replace(/\s+/g, ' ')

export const describeSteps: readonly Step[] = [
  ...Object.entries(DESCRIPTIONS).map(
    ([object, expected]) =>
      ({
        name: `describe ${object} prints its fields`,
        async run({ kubectl }) {
          const output = collapse(await kubectl.out(`describe ${object}`))
          for (const text of expected) expect(output).toContain(text)
        },
      }) satisfies Step,
  ),
  {
    name: 'describe of a missing object fails with NotFound',
    async run({ kubectl }) {
      expect(await kubectl.expectError('describe pvc nowhere')).toBe(
        'Error from server (NotFound): persistentvolumeclaims "nowhere" not found\n',
      )
    },
  },
]
