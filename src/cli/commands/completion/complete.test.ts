import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { createProgram } from '../../program.ts'
import { complete } from './complete.ts'

const program = createProgram({
  clock: manualClock(),
  random: () => 0.5,
  signal: new AbortController().signal,
  write: () => {},
})
const claimsByNamespace: Record<string, string[]> = { default: ['orders', 'archive'], shop: ['cart'] }

async function completed(...words: string[]): Promise<readonly string[] | 'file'> {
  const completion = await complete(program, {
    words,
    objectNames: (kubeconfig) => ({
      namespaces: async () => (kubeconfig === 'other' ? ['elsewhere'] : ['default', 'shop']),
      claims: async (namespace = 'default') => claimsByNamespace[namespace] ?? [],
      attributesClasses: async () => ['gold', 'silver'],
      csiDrivers: async () => ['disks.example.com'],
      tokens: async () => ['abcdef'],
      objects: async (kind, namespace = 'default') =>
        (kind === 'pvc' ? (claimsByNamespace[namespace] ?? []) : kind === 'node' ? ['node-1'] : []).map(
          (name) => `${kind}/${name}`,
        ),
    }),
  })
  return completion.is === 'file' ? 'file' : completion.values
}

describe('complete', () => {
  it('SYS-12 completes commands, without hidden ones', async () => {
    expect(await completed('')).toEqual(expect.arrayContaining(['up', 'grow', 'completion', 'help']))
    expect(await completed('')).not.toContain('__complete')
    expect(await completed('gr')).toEqual(['grow'])
    expect(await completed('help', 'mi')).toEqual(['migrate'])
    expect(await completed('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(await completed('nonsense', '')).toEqual([])
  })

  it('SYS-12 completes commands of a command, their flags and values', async () => {
    expect(await completed('rbac', '')).toEqual(['print', '--help'])
    expect(await completed('rbac', 'nonsense', '')).toEqual([])
    expect(await completed('rbac', 'print', '--comp')).toEqual(['--component'])
    expect(await completed('rbac', 'print', '--component', 'pro')).toEqual(['provisioner'])
  })

  it('SYS-12 completes the flags of a command', async () => {
    expect(await completed('grow', '--na')).toEqual(['--namespace'])
    expect(await completed('grow', '--dry-run', '--he')).toEqual(['--help'])
  })

  it('SYS-12 completes the values of a flag, separated by a space or an equals sign', async () => {
    expect(await completed('grow', '--output', '')).toEqual(['text', 'json', 'yaml'])
    expect(await completed('grow', '--output=j')).toEqual(['json'])
    expect(await completed('grow', '--output', '=', 'j')).toEqual(['json'])
    expect(await completed('grow', '--output', '=')).toEqual(['text', 'json', 'yaml'])
    expect(await completed('grow', '--kubeconfig', 'x')).toBe('file')
    expect(await completed('grow', '--parallel', '')).toEqual([])
  })

  it('SYS-12 completes namespaces, classes, drivers, and claims that are not named yet', async () => {
    expect(await completed('grow', '-n', 's')).toEqual(['shop'])
    expect(await completed('grow', '--kubeconfig', 'other', '--namespace', '')).toEqual(['elsewhere'])
    expect(await completed('migrate', '--to', '')).toEqual(['gold', 'silver'])
    expect(await completed('doctor', '--driver', '')).toEqual(['disks.example.com'])
    expect(await completed('doctor', '--csi-address', '')).toBe('file')
    expect(await completed('store', 'check', '--backup', '')).toBe('file')
    expect(await completed('token', '')).toEqual(['create', 'list', 'delete'])
    expect(await completed('token', 'delete', '')).toEqual(['abcdef'])
    expect(await completed('token', 'create', '')).toEqual([])
    expect(await completed('capacity-cleanup', '--driver-name', 'd')).toEqual(['disks.example.com'])
    expect(await completed('df', '--by', 'n')).toEqual(['node', 'namespace'])
    expect(await completed('grow', '')).toEqual(['orders', 'archive'])
    expect(await completed('grow', 'orders', '')).toEqual(['archive'])
    expect(await completed('grow', '--namespace', 'shop', 'c')).toEqual(['cart'])
  })

  it('SYS-12 completes nodes of the cluster', async () => {
    expect(await completed('simulate', '--drain', '')).toEqual(['node-1'])
    expect(await completed('simulate', '--node-group', '')).toBe('file')
  })

  it('SYS-12 completes the kind, then the name of an object', async () => {
    expect(await completed('retry', 'p')).toEqual(['pvc/', 'pv/', 'pod/'])
    expect(await completed('retry', 'pvc/')).toEqual(['pvc/orders', 'pvc/archive'])
    expect(await completed('retry', '--namespace', 'shop', 'pvc/c')).toEqual(['pvc/cart'])
    expect(await completed('retry', 'pvc/orders', '')).toEqual([])
    expect(await completed('why', '')).toEqual(['pvc/', 'pod/', 'pv/', 'node/'])
  })
})
