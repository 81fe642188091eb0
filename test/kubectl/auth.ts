// Steps for `kubectl auth`: can-i and whoami.
import { expect } from 'vitest'
import type { Step } from './step.ts'

export const authSteps: readonly Step[] = [
  {
    name: 'auth can-i prints yes and exits with 0, or prints no and exits with 1',
    async run({ kubectl, viewer }) {
      expect(await kubectl.out('auth can-i delete persistentvolumes')).toContain('yes')
      expect(await viewer.out('auth can-i list persistentvolumeclaims')).toContain('yes')
      expect((await viewer.run('auth can-i create persistentvolumeclaims', { exit: 1 })).out).toContain('no')
      expect((await viewer.run('auth can-i get secrets', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --as checks another user',
    async run({ kubectl }) {
      expect((await kubectl.run('auth can-i create pvc --as=nobody', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --list prints the rules',
    async run({ kubectl }) {
      expect(await kubectl.out('auth can-i --list')).toMatch(/^\*\.\* +\[\] +\[\] +\[\*\]$/m)
    },
  },
  {
    name: 'auth whoami prints the user name and groups',
    needs: 'auth whoami',
    async run({ kubectl }) {
      const output = await kubectl.out('auth whoami')
      expect(output).toMatch(/^Username +stowage-admin$/m)
      expect(output).toMatch(/^Groups +\[system:masters system:authenticated\]$/m)
    },
  },
]
