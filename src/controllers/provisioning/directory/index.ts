// Public exports of the directory provisioner.
export { DIRECTORY_PROVISIONER, openDirectoryPlugin } from './directory-plugin.ts'
export { openRoot, type Root } from './root.ts'
