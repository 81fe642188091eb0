// auth: can-i and whoami.
import { expect } from 'vitest'
import type { Step } from './step.ts'

export const asking: readonly Step[] = [
  {
    name: 'auth can-i says yes with 0 and no with 1',
    async run({ kubectl, viewer }) {
      expect(await kubectl.out('auth can-i delete persistentvolumes')).toContain('yes')
      expect(await viewer.out('auth can-i list persistentvolumeclaims')).toContain('yes')
      expect((await viewer.run('auth can-i create persistentvolumeclaims', { exit: 1 })).out).toContain('no')
      expect((await viewer.run('auth can-i get secrets', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --as asks for somebody else',
    async run({ kubectl }) {
      expect((await kubectl.run('auth can-i create pvc --as=nobody', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --list shows the rules',
    async run({ kubectl }) {
      expect(await kubectl.out('auth can-i --list')).toMatch(/^\*\.\* +\[\] +\[\] +\[\*\]$/m)
    },
  },
  {
    name: 'auth whoami tells name and groups',
    needs: 'auth whoami',
    async run({ kubectl }) {
      const told = await kubectl.out('auth whoami')
      expect(told).toMatch(/^Username +stowage-admin$/m)
      expect(told).toMatch(/^Groups +\[system:masters system:authenticated\]$/m)
    },
  },
]
