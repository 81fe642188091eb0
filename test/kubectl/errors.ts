// Steps that check the output of kubectl if the server rejects a request.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const claimManifest = (spec: string, name = 'bad') =>
  `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: ${name}}\nspec: ${spec}\n`

export const errorSteps: readonly Step[] = [
  {
    name: 'get of a missing object fails with NotFound, and get of an unknown resource type fails',
    async run({ kubectl }) {
      expect(await kubectl.expectError('get pvc nowhere')).toBe(
        'Error from server (NotFound): persistentvolumeclaims "nowhere" not found\n',
      )
      expect(await kubectl.expectError('get sc nowhere')).toBe(
        'Error from server (NotFound): storageclasses.storage.k8s.io "nowhere" not found\n',
      )
      expect(await kubectl.expectError('get unicorns')).toBe(
        'error: the server doesn\'t have a resource type "unicorns"\n',
      )
    },
  },
  {
    name: 'get of an existing and a missing object prints one and fails for the other',
    async run({ kubectl }) {
      const { out, err } = await kubectl.run('get pvc orders nowhere -o name', { exit: 1 })
      expect(out).toBe('persistentvolumeclaim/orders\n')
      expect(err).toContain('"nowhere" not found')
    },
  },
  {
    name: 'create of an existing object fails with AlreadyExists',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n'
      expect(await kubectl.expectError('create -f -', { stdin })).toBe(
        'Error from server (AlreadyExists): error when creating "STDIN": configmaps "settings" already exists\n',
      )
    },
  },
  {
    name: 'create in a missing namespace fails with NotFound',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: orphan}\n'
      expect(await kubectl.expectError('create -f - -n nowhere', { stdin })).toBe(
        'Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n',
      )
    },
  },
  {
    name: 'create of an invalid object reports every invalid field',
    async run({ kubectl }) {
      const text = await kubectl.expectError('create -f -', {
        stdin: claimManifest('{accessModes: [Sometimes], resources: {requests: {storage: "0"}}}'),
      })
      expect(text).toContain('The PersistentVolumeClaim "bad" is invalid:')
      expect(text).toContain('* spec.accessModes: Unsupported value: "Sometimes"')
      expect(text).toContain('* spec.resources[storage]: Invalid value: "0"')
    },
  },
  {
    name: 'create with an unknown field fails',
    needs: 'server-side strict validation',
    async run({ kubectl }) {
      const text = await kubectl.expectError('create -f -', { stdin: claimManifest('{colour: green}') })
      expect(text).toMatch(
        /^Error from server \(BadRequest\): error when creating "STDIN": .*strict decoding error: unknown field "spec\.colour"/,
      )
    },
  },
  {
    name: 'create --validate=false accepts an unknown field',
    async run({ kubectl }) {
      const spec =
        '{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}, colour: green}'
      await kubectl.run('create --validate=false -f -', { stdin: claimManifest(spec, 'lenient') })
      expect((await kubectl.json('get pvc lenient')).spec.colour).toBeUndefined()
    },
  },
  {
    name: 'create and apply of a kind that the server does not store fail with the reason',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n'
      for (const command of ['create -f -', 'apply -f -']) {
        const text = await kubectl.expectError(command, { stdin })
        expect(text).toContain('Stowage does not store services, so they cannot be written')
        expect(text).not.toContain('unknown field')
      }
      expect(await kubectl.expectError('create service clusterip web --tcp=80')).toContain(
        'Stowage does not store services',
      )
    },
  },
  {
    name: 'apply with a wrong apiVersion fails and prints the apiVersion of the kind',
    needs: 'server-side strict validation',
    async run({ kubectl }) {
      for (const apiVersion of ['v1beta1', 'storage.k8s.io/v2', 'storage/v1']) {
        const stdin = `apiVersion: ${apiVersion}\nkind: StorageClass\nmetadata: {name: x}\nprovisioner: example.com\n`
        const text = await kubectl.expectError('apply -f -', { stdin })
        expect(text).toContain(`no matches for kind "StorageClass" in version "${apiVersion}"`)
        expect(text).toMatch(/^Warning: apiVersion storage\.k8s\.io\/v1 is for .*\bStorageClass\b/m)
        expect(text).not.toContain('failed to list CRDs')
      }
    },
  },
  {
    name: 'create with a field of the wrong type fails with BadRequest',
    async run({ kubectl }) {
      const text = await kubectl.expectError('create --validate=false -f -', {
        stdin: claimManifest('{accessModes: ReadWriteOnce}'),
      })
      expect(text).toMatch(/Error from server \(BadRequest\): .*spec\.accessModes/)
    },
  },
  {
    name: 'patch of an immutable field fails',
    async run({ kubectl }) {
      const text = await kubectl.expectError(['patch', 'sc', 'fast', '-p', '{"provisioner":"other.example.com"}'])
      expect(text).toMatch(/^The StorageClass "fast" is invalid: provisioner: (Forbidden|Invalid value)/)
    },
  },
  {
    name: 'a viewer can read claims, and cannot write objects or read secrets',
    async run({ viewer }) {
      expect(await viewer.out('get pvc orders -o name')).toBe('persistentvolumeclaim/orders\n')
      expect(
        await viewer.expectError('create -f -', { stdin: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n' }),
      ).toContain(
        'Error from server (Forbidden): error when creating "STDIN": configmaps is forbidden: User "stowage-viewer" cannot create resource "configmaps" in API group "" in the namespace "shop"',
      )
      expect(await viewer.expectError('delete pvc orders')).toContain(
        'persistentvolumeclaims "orders" is forbidden: User "stowage-viewer" cannot delete resource "persistentvolumeclaims" in API group "" in the namespace "shop"',
      )
      expect(await viewer.expectError('get secret login')).toContain('secrets "login" is forbidden')
    },
  },
]
