// apply and diff: created, unchanged, changed, and fields removed from the file removed from the object.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const settings = (data: string, labels = '{team: red, region: north}') =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, labels: ${labels}}\ndata: ${data}\n`

const account = (secrets: readonly string[], finalizers: readonly string[]) =>
  `apiVersion: v1
kind: ServiceAccount
metadata: {name: applied, finalizers: [${finalizers.join(', ')}]}
secrets: [${secrets.map((name) => `{name: ${name}}`).join(', ')}]
`

const claim = (size: string, className: string) =>
  `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: applied}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ${className}
  resources: {requests: {storage: ${size}}}
`

export const applying: readonly Step[] = [
  {
    name: 'apply creates, then says unchanged and keeps the version',
    async run({ kubectl, file }) {
      const path = await file('applied.yaml', settings('{colour: green, size: large}'))
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied created\n')
      const before = await kubectl.json('get cm applied')
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied unchanged\n')
      expect(await kubectl.json('get cm applied')).toEqual(before)
    },
  },
  {
    name: 'apply changes values and removes keys that left the file, and no others',
    async run({ kubectl, file }) {
      await kubectl.out('annotate cm applied note=mine')
      const path = await file('applied.yaml', settings('{colour: blue}', '{team: red}'))
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied configured\n')
      const { data, metadata } = await kubectl.json('get cm applied')
      expect(data).toEqual({ colour: 'blue' })
      expect(metadata.labels).toEqual({ team: 'red' })
      expect(metadata.annotations.note).toBe('mine')
    },
  },
  {
    name: 'apply removes single items from lists that merge',
    async run({ kubectl, file }) {
      await kubectl.out([
        'apply',
        '-f',
        await file('account.yaml', account(['a', 'b'], ['example.com/a', 'example.com/b'])),
      ])
      await kubectl.out(['patch', 'sa', 'applied', '-p', '{"secrets":[{"name":"stranger"}]}'])
      await kubectl.out(['apply', '-f', await file('account.yaml', account(['b', 'c'], ['example.com/b']))])
      const { secrets, metadata } = await kubectl.json('get sa applied')
      expect(secrets.map(({ name }: any) => name).sort()).toEqual(['b', 'c', 'stranger'])
      expect(metadata.finalizers).toEqual(['example.com/b'])
    },
  },
  {
    name: 'apply --dry-run=server answers and stores nothing',
    async run({ kubectl, file }) {
      const path = await file('dry.yaml', settings('{colour: violet}'))
      expect(await kubectl.out(['apply', '--dry-run=server', '-f', path])).toBe(
        'configmap/applied configured (server dry run)\n',
      )
      expect(await kubectl.out('get cm applied -o jsonpath={.data.colour}')).toBe('blue')
    },
  },
  {
    name: 'diff ends with 0 where nothing differs and with 1, showing it, where something does',
    async run({ kubectl, file }) {
      const same = await file('same.yaml', settings('{colour: blue}', '{team: red}'))
      expect(await kubectl.out(['diff', '-f', same])).toBe('')
      const other = await file('other.yaml', settings('{colour: orange}', '{team: red}'))
      const { out } = await kubectl.run(['diff', '-f', other], { exit: 1 })
      expect(out).toMatch(/^-\s+colour: blue$/m)
      expect(out).toMatch(/^\+\s+colour: orange$/m)
      expect(await kubectl.out('get cm applied -o jsonpath={.data.colour}')).toBe('blue')
    },
  },
  {
    name: 'what get -o yaml prints can be applied and replaced, and the object stays as it was',
    async run({ kubectl }) {
      const content = ({ data, metadata: { labels, name } }: any) => ({ data, labels, name })
      const before = await kubectl.json('get cm applied')
      await kubectl.out('apply -f -', { stdin: await kubectl.out('get cm applied -o yaml') })
      expect(content(await kubectl.json('get cm applied'))).toEqual(content(before))
      const stored = await kubectl.out('get pvc archive -o yaml')
      expect(await kubectl.out('replace -f -', { stdin: stored })).toBe('persistentvolumeclaim/archive replaced\n')
      expect(await kubectl.out('get pvc archive -o yaml')).toBe(stored)
    },
  },
  {
    name: 'apply view-last-applied gives back the file',
    async run({ kubectl, file }) {
      const path = await file('applied.yaml', settings('{colour: blue}', '{team: red}'))
      await kubectl.out(['apply', '-f', path])
      const stdin = await kubectl.out('apply view-last-applied cm applied')
      expect(await kubectl.out('apply -f -', { stdin })).toBe('configmap/applied unchanged\n')
    },
  },
  {
    name: 'apply of a size written in another way changes nothing',
    async run({ kubectl }) {
      expect(await kubectl.out('apply -f -', { stdin: claim('1024Mi', 'fast') })).toBe(
        'persistentvolumeclaim/applied created\n',
      )
      const before = await kubectl.json('get pvc applied')
      expect(before.spec.resources.requests.storage).toBe('1Gi')
      await kubectl.out('apply -f -', { stdin: claim('1024Mi', 'fast') })
      expect(await kubectl.json('get pvc applied')).toEqual(before)
    },
  },
  {
    name: 'apply refuses to change what cannot change, and names the field',
    async run({ kubectl }) {
      const text = await kubectl.refusal('apply -f -', { stdin: claim('1Gi', 'slow') })
      expect(text).toContain('The PersistentVolumeClaim "applied" is invalid: spec: Forbidden:')
    },
  },
]
