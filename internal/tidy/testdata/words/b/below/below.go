package below

const maxLanes, planes, callsite = 1, 2, 3

func SiteIDs() {}
