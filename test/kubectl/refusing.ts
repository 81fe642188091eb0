// What kubectl prints when the server rejects a request.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const claim = (spec: string, name = 'bad') =>
  `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: ${name}}\nspec: ${spec}\n`

export const refusing: readonly Step[] = [
  {
    name: 'not found',
    async run({ kubectl }) {
      expect(await kubectl.refusal('get pvc nowhere')).toBe(
        'Error from server (NotFound): persistentvolumeclaims "nowhere" not found\n',
      )
      expect(await kubectl.refusal('get sc nowhere')).toBe(
        'Error from server (NotFound): storageclasses.storage.k8s.io "nowhere" not found\n',
      )
      expect(await kubectl.refusal('get unicorns')).toBe('error: the server doesn\'t have a resource type "unicorns"\n')
    },
  },
  {
    name: 'some found, some not',
    async run({ kubectl }) {
      const { out, err } = await kubectl.run('get pvc orders nowhere -o name', { exit: 1 })
      expect(out).toBe('persistentvolumeclaim/orders\n')
      expect(err).toContain('"nowhere" not found')
    },
  },
  {
    name: 'already exists',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n'
      expect(await kubectl.refusal('create -f -', { stdin })).toBe(
        'Error from server (AlreadyExists): error when creating "STDIN": configmaps "settings" already exists\n',
      )
    },
  },
  {
    name: 'no such namespace',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}\n'
      expect(await kubectl.refusal('create -f - -n nowhere', { stdin })).toBe(
        'Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n',
      )
    },
  },
  {
    name: 'an invalid object, field by field',
    async run({ kubectl }) {
      const text = await kubectl.refusal('create -f -', {
        stdin: claim('{accessModes: [Sometimes], resources: {requests: {storage: "0"}}}'),
      })
      expect(text).toContain('The PersistentVolumeClaim "bad" is invalid:')
      expect(text).toContain('* spec.accessModes: Unsupported value: "Sometimes"')
      expect(text).toContain('* spec.resources[storage]: Invalid value: "0"')
    },
  },
  {
    name: 'an unknown field',
    needs: 'server-side strict validation',
    async run({ kubectl }) {
      const text = await kubectl.refusal('create -f -', { stdin: claim('{colour: green}') })
      expect(text).toMatch(
        /^Error from server \(BadRequest\): error when creating "STDIN": .*strict decoding error: unknown field "spec\.colour"/,
      )
    },
  },
  {
    name: 'an unknown field, accepted with --validate=false',
    async run({ kubectl }) {
      const spec =
        '{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}, colour: green}'
      await kubectl.run('create --validate=false -f -', { stdin: claim(spec, 'lenient') })
      expect((await kubectl.json('get pvc lenient')).spec.colour).toBeUndefined()
    },
  },
  {
    name: 'a wrong type',
    async run({ kubectl }) {
      const text = await kubectl.refusal('create --validate=false -f -', {
        stdin: claim('{accessModes: ReadWriteOnce}'),
      })
      expect(text).toMatch(/Error from server \(BadRequest\): .*spec\.accessModes/)
    },
  },
  {
    name: 'a field that cannot change',
    async run({ kubectl }) {
      const text = await kubectl.refusal(['patch', 'sc', 'fast', '-p', '{"provisioner":"other.example.com"}'])
      expect(text).toMatch(/^The StorageClass "fast" is invalid: provisioner: (Forbidden|Invalid value)/)
    },
  },
  {
    name: 'someone who may only look',
    async run({ viewer }) {
      expect(await viewer.out('get pvc orders -o name')).toBe('persistentvolumeclaim/orders\n')
      expect(
        await viewer.refusal('create -f -', { stdin: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n' }),
      ).toContain(
        'Error from server (Forbidden): error when creating "STDIN": configmaps is forbidden: User "stowage-viewer" cannot create resource "configmaps" in API group "" in the namespace "shop"',
      )
      expect(await viewer.refusal('delete pvc orders')).toContain(
        'persistentvolumeclaims "orders" is forbidden: User "stowage-viewer" cannot delete resource "persistentvolumeclaims" in API group "" in the namespace "shop"',
      )
      expect(await viewer.refusal('get secret login')).toContain('secrets "login" is forbidden')
    },
  },
]
