// Steps for `kubectl create`: from files, from standard input, from flags, and as a dry run.
import { expect } from 'vitest'
import { linesOf, type Step } from './step.ts'

const OBJECTS = new URL('objects.yaml', import.meta.url).pathname

export const createSteps: readonly Step[] = [
  {
    name: 'create -f - reads JSON from standard input',
    async run({ kubectl }) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }
      const out = await kubectl.out('create -f -', { stdin: JSON.stringify(namespace) })
      expect(out).toBe('namespace/shop created\n')
    },
  },
  {
    name: 'create -f creates every document of a YAML file',
    async run({ kubectl }) {
      expect(linesOf(await kubectl.out(['create', '-f', OBJECTS]))).toEqual([
        'node/node-a created',
        'storageclass.storage.k8s.io/fast created',
        'volumeattributesclass.storage.k8s.io/silver created',
        'csidriver.storage.k8s.io/nobody.example.com created',
        'csinode.storage.k8s.io/node-a created',
        'volumeattachment.storage.k8s.io/attach-a created',
        'persistentvolume/disk-a created',
        'persistentvolumeclaim/orders created',
        'persistentvolumeclaim/archive created',
        'pod/web created',
        'resourcequota/ceiling created',
        'limitrange/bounds created',
        'secret/login created',
        'configmap/settings created',
        'serviceaccount/robot created',
        'lease.coordination.k8s.io/leader created',
        'csistoragecapacity.storage.k8s.io/zone-1-fast created',
      ])
    },
  },
  {
    name: 'create -f - accepts an event about an object',
    async run({ kubectl }) {
      const uid = await kubectl.out('get pvc orders -o jsonpath={.metadata.uid}')
      const event = {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'orders.1' },
        involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid },
        type: 'Warning',
        reason: 'NoRoom',
        message: 'nothing is left',
        source: { component: 'tester' },
        count: 3,
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
      }
      expect(await kubectl.out('create -f -', { stdin: JSON.stringify(event) })).toBe('event/orders.1 created\n')
    },
  },
  {
    name: 'create -f creates every item of a list',
    async run({ kubectl, file }) {
      const items = ['one', 'two'].map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }))
      const path = await file('list.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
      expect(await kubectl.out(['create', '-f', path])).toBe('configmap/one created\nconfigmap/two created\n')
    },
  },
  {
    name: 'create -f uses the name that the server generates',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: draft-}\n'
      expect(await kubectl.out('create -f -', { stdin })).toMatch(
        /^configmap\/draft-[bcdfghjklmnpqrstvwxz2456789]{5} created\n$/,
      )
    },
  },
  {
    name: 'create --dry-run=server validates and stores nothing',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ghost}\n'
      const out = await kubectl.out('create --dry-run=server -f -', { stdin })
      expect(out).toBe('configmap/ghost created (server dry run)\n')
      await kubectl.expectError('get cm ghost')
      const invalidManifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n'
      expect(await kubectl.expectError('create --dry-run=server -f -', { stdin: invalidManifest })).toContain(
        'metadata.name',
      )
    },
  },
  {
    name: 'create builds objects from flags',
    async run({ kubectl }) {
      expect(await kubectl.out('create configmap flags --from-literal=a=b')).toBe('configmap/flags created\n')
      expect(await kubectl.out('create secret generic flags --from-literal=a=b')).toBe('secret/flags created\n')
      expect(await kubectl.out('create quota flags --hard=pods=10')).toBe('resourcequota/flags created\n')
      expect(await kubectl.out('create serviceaccount flags')).toBe('serviceaccount/flags created\n')
      expect(await kubectl.out('create namespace flags')).toBe('namespace/flags created\n')
      expect((await kubectl.json('get secret flags')).data).toEqual({ a: 'Yg==' })
    },
  },
]
