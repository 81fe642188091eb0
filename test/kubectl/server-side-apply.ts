// Steps for `kubectl apply --server-side`: the server merges the fields and tracks their managers.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const configMap = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: ${data}\n`
const applyAs = (manager: string) => `apply --server-side --field-manager=${manager} -f -`

export const serverSideApplySteps: readonly Step[] = [
  {
    name: 'apply --server-side creates an object, and changes nothing when repeated',
    async run({ kubectl }) {
      const stdin = configMap('{colour: green, size: large}')
      expect(await kubectl.out('apply --server-side -f -', { stdin })).toBe('configmap/owned serverside-applied\n')
      const objectBefore = await kubectl.json('get cm owned')
      await kubectl.out('apply --server-side -f -', { stdin })
      expect(await kubectl.json('get cm owned')).toEqual(objectBefore)
    },
  },
  {
    name: 'apply --server-side removes a field that its manager no longer applies',
    async run({ kubectl }) {
      await kubectl.out('apply --server-side -f -', { stdin: configMap('{colour: green}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'green' })
    },
  },
  {
    name: 'apply --server-side reports a conflict on a field of another manager, and overwrites it with --force-conflicts',
    async run({ kubectl }) {
      const stdin = configMap('{colour: blue}')
      const text = await kubectl.expectError(applyAs('rival'), { stdin })
      expect(text).toContain('Apply failed with 1 conflict: conflict with "kubectl": .data.colour')
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'green' })
      await kubectl.out(`${applyAs('rival')} --force-conflicts`, { stdin })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side keeps the fields of other managers',
    async run({ kubectl }) {
      await kubectl.out(applyAs('friend'), { stdin: configMap('{shape: round}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue', shape: 'round' })
      await kubectl.out(applyAs('friend'), { stdin: configMap('{}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side --dry-run=server stores nothing',
    async run({ kubectl }) {
      const out = await kubectl.out(`${applyAs('rival')} --dry-run=server`, { stdin: configMap('{colour: red}') })
      expect(out).toBe('configmap/owned serverside-applied (server dry run)\n')
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side takes over an object created by client-side apply',
    async run({ kubectl }) {
      const manifest = (data: string) => configMap(data).replace('name: owned', 'name: moved')
      await kubectl.out('apply -f -', { stdin: manifest('{colour: green, size: large}') })
      await kubectl.out('apply --server-side -f -', { stdin: manifest('{colour: green}') })
      expect((await kubectl.json('get cm moved')).data.colour).toBe('green')
    },
  },
]
