// The directory provisioner.
export { DIRECTORY_PROVISIONER, type DirectoryPluginOptions, openDirectoryPlugin } from './directory-plugin.ts'
export { openRoot, type Root } from './root.ts'
