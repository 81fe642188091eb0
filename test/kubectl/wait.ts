// Steps for `kubectl wait`: for a condition, a value, a deletion, and until a timeout.
import { expect } from 'vitest'
import type { Step } from './step.ts'

export const waitSteps: readonly Step[] = [
  {
    name: 'wait --for=condition returns if the condition is already met',
    async run({ kubectl }) {
      expect(await kubectl.out('wait --for=condition=Ready node/node-a --timeout=30s')).toBe(
        'node/node-a condition met\n',
      )
    },
  },
  {
    name: 'wait --for=condition returns when the condition is met',
    needs: '--subresource',
    async run({ kubectl }) {
      const wait = kubectl.out('wait --for=condition=Tested node/node-a --timeout=60s')
      const condition = { type: 'Tested', status: 'True', reason: 'Done', message: 'done' }
      await kubectl.out([
        'patch',
        'node',
        'node-a',
        '--subresource=status',
        '-p',
        JSON.stringify({ status: { conditions: [condition] } }),
      ])
      expect(await wait).toBe('node/node-a condition met\n')
    },
  },
  {
    name: 'wait --for=jsonpath returns when the field has the value',
    needs: 'wait for a jsonpath',
    async run({ kubectl }) {
      const wait = kubectl.out('wait --for=jsonpath={.data.state}=ready cm/settings --timeout=60s')
      await kubectl.out(['patch', 'cm', 'settings', '-p', '{"data":{"state":"ready"}}'])
      expect(await wait).toBe('configmap/settings condition met\n')
    },
  },
  {
    name: 'wait --for=delete returns when the object is deleted',
    needs: 'wait for a deleted object',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brief, finalizers: [example.com/hold]}\n'
      await kubectl.out('create -f -', { stdin })
      await kubectl.out('delete cm brief --wait=false')
      const wait = kubectl.run('wait --for=delete cm/brief --timeout=60s')
      await kubectl.out(['patch', 'cm', 'brief', '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])
      await wait
      await kubectl.expectError('get cm brief')
    },
  },
  {
    name: 'wait fails after its timeout',
    async run({ kubectl }) {
      const text = await kubectl.expectError('wait --for=condition=Never node/node-a --timeout=1s')
      expect(text).toContain('timed out waiting for the condition')
    },
  },
]
